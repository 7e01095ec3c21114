"""What an adapter of the network has to provide: a stream of frames, both ways, in order.

gRPC over sockets and the simulator's memory network differ in this alone; everything else about a
channel (`stream_channel`) and about serving one (`barnabas_broker.rpc.exchange`) is common.
"""

from typing import Protocol


class StreamBroken(Exception):
    """The stream ended otherwise than in order; the text says why, as far as is known."""


class FrameStream(Protocol):
    """One end of a stream. One task reads, one at a time writes."""

    async def read(self) -> bytes | None:
        """The next frame, or None when the other end closed in order; raises `StreamBroken`."""
        ...

    async def write(self, frame: bytes) -> None:
        """Returns when the stream has room for more; raises `StreamBroken`."""
        ...

    def close(self) -> None:
        """End the stream at once; the other end sees it broken. May be called twice."""
        ...

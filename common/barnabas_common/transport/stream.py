"""What an adapter of the network provides: a stream of frames in both directions, in order.

gRPC over sockets and the simulator's memory network differ only in this; everything else about a
channel (`stream_channel`) and about serving one (`barnabas_broker.rpc.exchange`) is common.
"""

from typing import Protocol


class StreamBroken(Exception):
    """The stream was not closed cleanly; the text says why, as far as known."""


class FrameStream(Protocol):
    """One end of a stream. One task reads, and one at a time writes."""

    async def read(self) -> bytes | None:
        """The next frame, or None after the other end closed cleanly; raises `StreamBroken`."""
        ...

    async def write(self, frame: bytes) -> None:
        """Returns when the stream has room for more; raises `StreamBroken`."""
        ...

    def close(self) -> None:
        """End the stream immediately; it breaks for the other end. May be called twice."""
        ...

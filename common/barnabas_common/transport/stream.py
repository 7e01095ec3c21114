"""The interface that each adapter of the network implements: an ordered stream of frames each way.

gRPC over sockets and the simulator's memory network differ only in this. All the rest of a channel
(`stream_channel`) and of the side that serves it (`barnabas_broker.rpc.exchange`) is common.
"""

from typing import Protocol

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Of a client's request."""

MAX_ANSWER_BYTES = 1024 * 1024 * 1024
"""As much as a caller takes. Requests have limits of their own, which are lower."""


class StreamBroken(Exception):
    """The stream could not be opened, or was not closed cleanly; the text says why, if known."""


class FrameStream(Protocol):
    """One end of a stream. One task reads; one task at a time writes."""

    async def read(self) -> bytes | None:
        """The next frame, or None after the other end closed cleanly; raises `StreamBroken`."""
        ...

    async def write(self, frame: bytes) -> None:
        """Send a frame; returns when the stream has room for more, raises `StreamBroken`."""
        ...

    def close(self) -> None:
        """End the stream immediately; at the other end it breaks. A second call does nothing."""
        ...

"""A channel over a stream that fails in a way no adapter means to."""

import asyncio

import pytest
from barnabas_common.errors import MaybeApplied
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.runtime.network import Address, Service
from barnabas_common.transport.stream_channel import StreamChannel


class _CannotWrite:
    """A stream that reads nothing, and raises an error of its own at the first write."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read(self) -> bytes | None:
        await self.closed
        return None

    async def write(self, frame: bytes) -> None:
        raise ValueError("planted")

    def close(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def test_calls_fail_immediately_when_the_writer_fails_unexpectedly() -> None:
    async def open_stream() -> _CannotWrite:
        return _CannotWrite()

    channel = StreamChannel(Address("127.0.0.1", 1), Service.ADMIN, open_stream, 1 << 20)
    try:
        async with asyncio.timeout(5.0):  # the call itself waits for ten minutes
            with pytest.raises(MaybeApplied, match="closed"):
                await channel.call(MetadataRequest(), timeout=600.0)
    finally:
        await channel.close()

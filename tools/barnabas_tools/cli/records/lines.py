"""Reads lines from stdin or a file without blocking the event loop."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator

_CHUNK_BYTES = 1 << 16


async def lines(descriptor: int) -> AsyncIterator[bytes]:
    """Yield each line without its newline, also a last line without one."""
    begun: list[bytes] = []  # the parts of a line that is longer than a chunk
    async for chunk in _chunks(descriptor):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]
    rest = b"".join(begun)
    if rest:
        yield rest


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    # A regular file is always ready, and the event loop refuses to watch one.
    watched = not stat.S_ISREG(os.fstat(descriptor).st_mode) and descriptor_can_wait(descriptor)
    while True:
        if watched:
            await _readable(descriptor)
        else:
            await asyncio.sleep(0)  # let Ctrl-C be handled
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def descriptor_can_wait(descriptor: int) -> bool:
    """Whether the event loop can watch the descriptor; it cannot watch `/dev/null`, for example."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(descriptor, lambda: None)
    except (OSError, NotImplementedError):
        return False
    loop.remove_reader(descriptor)
    return True


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)

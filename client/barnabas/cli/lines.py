"""Lines from stdin or a file, as an asyncio program wants them: a terminal must not block it."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator

_CHUNK_BYTES = 1 << 16


async def lines(descriptor: int) -> AsyncIterator[bytes]:
    """Each line without its newline; a last line without one counts too."""
    begun: list[bytes] = []  # of a line that is longer than a chunk, joined once at its end
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
            await asyncio.sleep(0)  # Ctrl-C must get its turn
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def descriptor_can_wait(descriptor: int) -> bool:
    """Whether the event loop can watch it; `/dev/null`, for one, it cannot."""
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

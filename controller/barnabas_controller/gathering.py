"""Many ZooKeeper requests in flight at once, in bounded chunks, answers in the order asked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 256


async def in_chunks(
    function: Callable[[T], Awaitable[R]], items: Sequence[T], size: int = CHUNK
) -> list[R]:
    """`function` of every item, at most `size` at a time.

    If any fails, the rest of its chunk is awaited and the first error raised: nothing is left
    running behind the caller's back.
    """
    results: list[R] = []
    for start in range(0, len(items), size):
        tasks = [asyncio.ensure_future(function(item)) for item in items[start : start + size]]
        await asyncio.gather(*tasks, return_exceptions=True)
        results += [task.result() for task in tasks]
    return results

"""Running many jobs with limited concurrency."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def run_limited(
    job: Callable[[T], Awaitable[None]], items: Iterable[T], concurrency: int
) -> None:
    """Run the job for all items; raise the first error when all have ended."""
    limit = asyncio.Semaphore(concurrency)

    async def run(item: T) -> None:
        async with limit:
            await job(item)

    results = await asyncio.gather(*map(run, items), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result

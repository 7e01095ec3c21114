"""Sends ZooKeeper operations until they are answered, one or many concurrently.

After a connection loss it is unknown whether the operation was applied. A read may be repeated. A
write that is repeated must be idempotent, or its caller must check whether an earlier attempt was
applied (see `store.py`, `fenced_store.py`). An expired session ends the retries.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from barnabas_controller.zookeeper.session import ConnectionLoss

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

PAUSE_SECONDS = 0.1
CHUNK = 256


async def until_answered(operation: Callable[[], Awaitable[T]]) -> T:
    """Return the operation's result; retry on ConnectionLoss, raise every other error."""
    attempts = 0
    while True:
        try:
            return await operation()
        except ConnectionLoss as error:
            attempts += 1
            if attempts == 1:
                logger.warning("the connection to ZooKeeper was lost, retrying: %s", error)
            await asyncio.sleep(PAUSE_SECONDS)


async def in_chunks(
    function: Callable[[T], Awaitable[R]], items: Sequence[T], size: int = CHUNK
) -> list[R]:
    """Call `function` for every item, at most `size` concurrently; the results are in order.

    If a call fails, the rest of its chunk is awaited before the first error is raised, so that no
    call continues in the background.
    """
    results: list[R] = []
    for start in range(0, len(items), size):
        tasks = [asyncio.ensure_future(function(item)) for item in items[start : start + size]]
        await asyncio.gather(*tasks, return_exceptions=True)
        results += [task.result() for task in tasks]
    return results

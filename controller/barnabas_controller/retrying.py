"""A ZooKeeper operation sent until it is answered.

A lost connection does not say whether the operation was applied. Reads are simply asked again; the
writes that use this are written so that a second time does no harm, or look first whether the
first one did it (see `store.py`, `fenced_store.py`). An expired session ends the waiting.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas_controller.zookeeper.session import ConnectionLoss

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_SECONDS = 0.1


async def until_answered(operation: Callable[[], Awaitable[T]]) -> T:
    """The operation's result; retried on ConnectionLoss, every other error is the caller's."""
    attempts = 0
    while True:
        try:
            return await operation()
        except ConnectionLoss as error:
            attempts += 1
            if attempts == 1:
                logger.warning("the connection to ZooKeeper broke, asking again: %s", error)
            await asyncio.sleep(PAUSE_SECONDS)

"""A new producer id for each producer that asks (`ProducerIdManager`).

The broker takes blocks of ids from ZooKeeper. What is left of a block when its process ends is
never given out.
"""

import asyncio
from collections.abc import Callable

from barnabas_common.errors import CoordinatorLoadInProgressError
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.producer_ids import take_block
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import ZooKeeperError

# Less than a client waits for an answer; it asks again.
_LONGEST_WAIT_SECONDS = 1.0


class ProducerIdManager:
    """`store` returns that of the current ZooKeeper session, None without one."""

    def __init__(self, broker_id: int, store: Callable[[], Store | None]) -> None:
        self._broker_id = broker_id
        self._store = store
        self._ids = iter(range(0))
        self._taking = asyncio.Lock()

    async def generate(self) -> int:
        """Return the next id. Raises CoordinatorLoadInProgressError while there is no block."""
        try:
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS), self._taking:
                return await self._next()
        except TimeoutError:
            raise CoordinatorLoadInProgressError("ZooKeeper does not answer") from None
        except ZooKeeperError as error:
            raise CoordinatorLoadInProgressError(f"ZooKeeper: {error}") from error

    async def _next(self) -> int:
        producer_id = next(self._ids, None)
        if producer_id is not None:
            return producer_id
        store = self._store()
        if store is None:
            raise CoordinatorLoadInProgressError("this broker has no ZooKeeper session now")
        try:
            block = await take_block(store, self._broker_id)
        except MalformedZnode as error:
            store.report(error)
            raise CoordinatorLoadInProgressError(str(error)) from error
        self._ids = iter(range(block.first + 1, block.last + 1))
        return block.first

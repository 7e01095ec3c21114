"""A new producer id for each producer that asks (`ProducerIdManager`).

The broker takes blocks of ids from ZooKeeper, the first when it starts: then producers can start
while ZooKeeper is down. What is left of a block when its process ends is never given out.

The znode that names the latest block may be set back, deleted, or restored with ZooKeeper from an
older copy. Two producers would then have one id, and a leader would take the records of one for
retries of the other's. So a block lies above the last one of this process. If the broker's
directories are newer than ZooKeeper, the first one lies above the time in microseconds: the same
copy may be restored again later, and no cluster starts a thousand producers in a millisecond. That
needs clocks which are not set back between the two.
"""

import asyncio
import logging
from collections.abc import Callable

from barnabas_common.errors import CoordinatorLoadInProgressError
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.producer_ids import take_block
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import ZooKeeperError

logger = logging.getLogger(__name__)

# Less than a client waits for an answer; it asks again.
_LONGEST_WAIT_SECONDS = 1.0

_IDS_PER_MS = 1000


class ProducerIdManager:
    """`store` returns that of the current ZooKeeper session, None without one.

    `is_ahead` returns whether this broker's directories are newer than what ZooKeeper had when it
    started. `wall_ms` is the time since 1970.
    """

    def __init__(
        self,
        broker_id: int,
        store: Callable[[], Store | None],
        is_ahead: Callable[[], bool] = lambda: False,
        wall_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._broker_id = broker_id
        self._store = store
        self._is_ahead = is_ahead
        self._wall_ms = wall_ms
        self._newest = -1
        self._ids = range(0)
        self._taking = asyncio.Lock()

    async def take_first_block(self) -> None:
        """Take a block if ZooKeeper answers; otherwise the first producer makes the broker try."""
        try:
            await self._until_there_are_ids()
        except CoordinatorLoadInProgressError as error:
            logger.warning("no producer ids yet: %s", error)

    async def generate(self) -> int:
        """Return the next id. Raises CoordinatorLoadInProgressError while there is no block."""
        while not self._ids:
            await self._until_there_are_ids()
        producer_id, self._ids = self._ids[0], self._ids[1:]
        return producer_id

    async def _until_there_are_ids(self) -> None:
        try:
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS), self._taking:
                if not self._ids:
                    await self._take_block()
        except TimeoutError:
            raise CoordinatorLoadInProgressError("ZooKeeper does not answer") from None
        except ZooKeeperError as error:
            raise CoordinatorLoadInProgressError(f"ZooKeeper: {error}") from error

    async def _take_block(self) -> None:
        store = self._store()
        if store is None:
            raise CoordinatorLoadInProgressError("this broker has no ZooKeeper session now")
        above = self._newest
        if above < 0 and self._is_ahead():
            above = self._wall_ms() * _IDS_PER_MS
        try:
            block = await take_block(store, self._broker_id, above)
        except MalformedZnode as error:
            store.report(error)
            raise CoordinatorLoadInProgressError(str(error)) from error
        self._ids, self._newest = range(block.first, block.last + 1), block.last

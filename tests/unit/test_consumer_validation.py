"""A leader's answer on where an epoch ends, and a fetch that an older leader answers meanwhile."""

import asyncio
from typing import Any

from barnabas import Consumer
from barnabas_common.messages.fetch import FetchRequest

from tests.support.scripted_brokers import ScriptedBrokers
from tests.unit.test_consumer_reading import read, write


class Held:
    """A fault that takes the request of one broker, and returns its answer when `release` is set.

    The answer is made when the request arrives.
    """

    def __init__(self, brokers: ScriptedBrokers, broker_id: int) -> None:
        self.taken = asyncio.Event()
        self.release = asyncio.Event()
        self._brokers = brokers
        self._broker_id = broker_id

    async def __call__(self, broker_id: int, request: Any) -> Any:
        is_fetch = isinstance(request, FetchRequest)
        if broker_id != self._broker_id:
            assert is_fetch
            self._brokers.fetch_faults.append(self)
            return None
        if is_fetch:
            answer = await self._brokers.fetch(broker_id, request)
        else:
            answer = self._brokers.epoch_ends(request)
        self.taken.set()
        await self.release.wait()
        return answer


async def test_the_end_of_an_epoch_says_nothing_about_later_batches() -> None:
    """The consumer has asked about the epoch of the batch before; it returned records twice."""
    async with (
        ScriptedBrokers() as brokers,
        Consumer(
            "flights", bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime,
            auto_offset_reset="earliest", retry_backoff_ms=5, metadata_max_age_ms=10,
        ) as consumer,
        asyncio.timeout(10),
    ):  # fmt: skip
        write(brokers, 0, 1)
        assert [record.offset for record in await read(consumer, 1)] == [0]
        fetch, end_of_epoch = Held(brokers, 2), Held(brokers, 1)
        brokers.fetch_faults.append(fetch)
        brokers.elect(0, leader=2)
        write(brokers, 1, 1)
        await fetch.taken.wait()
        brokers.epoch_faults.append(end_of_epoch)
        brokers.elect(0, leader=1)
        await end_of_epoch.taken.wait()
        fetch.release.set()
        assert [record.offset for record in await read(consumer, 1)] == [1]
        end_of_epoch.release.set()
        write(brokers, 2, 1)
        assert [record.offset for record in await read(consumer, 1)] == [2]

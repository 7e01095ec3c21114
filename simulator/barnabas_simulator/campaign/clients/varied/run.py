"""What the clients on topics of their own have in common."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import BarnabasError, CorruptMessageError
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients import factory
from barnabas_simulator.campaign.clients.factory import REQUEST_TIMEOUT_MS, RETRY_SECONDS, Read
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.labels import label_of


@dataclass
class VariedRun:
    """The run that the clients take part in. `counts` counts what happened to them by kind; `stop`
    is set when nothing is sent any more that need not be, `calm` when the faults are over."""

    cluster: SimulatedCluster
    options: Options
    invariants: Invariants
    counts: Counter[str]
    note: Callable[[str], None]
    calm: asyncio.Event
    stop: asyncio.Event

    def chance(self, name: str) -> random.Random:
        return random.Random(f"{self.options.seed}/{name}")

    def told(self, name: str, error: BarnabasError) -> None:
        self.counts[f"{name.partition('-')[0]}: {type(error).__name__}"] += 1
        self.note(f"{name}: {type(error).__name__}: {error}")

    async def producer(self, name: str, **options: Any) -> Producer:
        """A started producer."""
        told = partial(self.told, name)
        return await factory.started_producer(self.cluster, self.options, name, told, **options)

    def consumer(self, name: str, bootstrap: str = "", **options: Any) -> Consumer:
        settings = {"request_timeout_ms": REQUEST_TIMEOUT_MS, **options}
        return factory.consumer(self.cluster, self.options, name, bootstrap, **settings)

    async def again_and_again(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Work without end; begin again after each error that a client may meet."""
        while True:
            try:
                await work()
            except CorruptMessageError:
                raise  # no fault of a run damages written records: this is a violation
            except BarnabasError as error:
                self.told(name, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def read_all(
        self, name: str, partitions: Sequence[TopicPartition], bootstrap: str
    ) -> Read:
        """Every partition from its beginning to its present end."""
        records: Read = {partition: [] for partition in partitions}
        async with self.consumer(name, bootstrap) as consumer:
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
                for record in await consumer.poll(timeout_ms=500):
                    records[record.topic_partition].append((record.offset, label_of(record)))
        return records


class Part(Protocol):
    """The clients of one topic, or of one kind. `hosts` are their nodes of the network."""

    @property
    def hosts(self) -> Sequence[str]: ...

    async def create_topics(self, admin: Admin) -> None: ...

    def start(self) -> None: ...

    async def finish(self) -> None:
        """Wait for the end of what was begun; `run.stop` is set."""

    def tasks(self) -> Iterable[asyncio.Task[None]]: ...

    async def read_back(self, bootstrap: str) -> None:
        """Read what is there in the end, by new clients, and keep it for the judge."""

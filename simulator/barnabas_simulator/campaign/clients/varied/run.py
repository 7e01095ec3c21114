"""What the clients on topics of their own have in common."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import BarnabasError, CorruptMessageError, NoBrokerReachableError
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.options import Options
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.labels import label_of

REQUEST_TIMEOUT_MS = 4_000
METADATA_MAX_AGE_MS = 10_000
RETRY_SECONDS = 0.5

Read = dict[TopicPartition, list[tuple[int, bytes]]]


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
        """A started producer, although every broker may be unreachable while faults last."""
        settings = {
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "delivery_timeout_ms": 600_000,
            "batch_size": self.options.batch_size,
            "linger_ms": self.options.linger_ms,
            "metadata_max_age_ms": METADATA_MAX_AGE_MS,
            **options,
        }
        while True:
            try:
                runtime = self.cluster.client_runtime(name)
                return await Producer(self.cluster.bootstrap, runtime=runtime, **settings).start()
            except NoBrokerReachableError as error:
                self.told(name, error)
                await asyncio.sleep(RETRY_SECONDS)

    def consumer(self, name: str, bootstrap: str = "", **options: Any) -> Consumer:
        settings = {
            "auto_offset_reset": "earliest",
            "fetch_max_bytes": self.options.fetch_max_bytes,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "metadata_max_age_ms": METADATA_MAX_AGE_MS,
            **options,
        }
        return Consumer(
            bootstrap_servers=bootstrap or self.cluster.bootstrap,
            runtime=self.cluster.client_runtime(name),
            **settings,
        )

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

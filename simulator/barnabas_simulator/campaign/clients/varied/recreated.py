"""A topic that is deleted and made again by the same name, with records in every incarnation."""

import asyncio

from barnabas import Admin, Producer
from barnabas.producer.handle import DeliveryHandle
from barnabas_common.errors import (
    BarnabasError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.factory import RETRY_SECONDS, Read
from barnabas_simulator.campaign.clients.processes import run_as
from barnabas_simulator.campaign.clients.varied.run import VariedRun
from barnabas_simulator.delivery import History
from barnabas_simulator.labels import label_of

RECREATED = "recreated"
MAKER, READER, JUDGE = (f"{RECREATED}-{name}" for name in ("maker", "reader", "judge"))
TIMEOUT_MS = 5_000
DELIVERY_MS = 10_000
READER_SECONDS = 5.0  # of one consumer: each begins at the beginning


class Recreated:
    """`history`: of each incarnation what was sent to it, and acknowledged before its deletion was
    asked for. `records`: what the last one has in the end."""

    def __init__(self, run: VariedRun) -> None:
        self._run = run
        self.partitions = [
            TopicPartition(RECREATED, number) for number in range(run.options.recreated)
        ]
        self.history: list[dict[TopicPartition, History]] = []
        self.records: Read = {}
        self._accepts_acks = False
        self._known_id: str | None = None
        self._making: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def hosts(self) -> list[str]:
        return [MAKER, READER, JUDGE]

    async def create_topics(self, admin: Admin) -> None:
        await self._create(admin)

    def start(self) -> None:
        self._making = run_as(MAKER, self._make())
        reading = self._run.again_and_again(READER, self._read)
        self._tasks.append(run_as(READER, reading))

    async def finish(self) -> None:
        assert self._making is not None
        await self._making

    def tasks(self) -> list[asyncio.Task[None]]:
        return self._tasks

    async def read_back(self, bootstrap: str) -> None:
        self.records = await self._run.read_all(JUDGE, self.partitions, bootstrap)

    # ---- the one that makes and deletes it

    async def _make(self) -> None:
        """It exists in the end, with records."""
        run, chance = self._run, self._run.chance(MAKER)
        runtime = run.cluster.client_runtime(MAKER)
        async with Admin(
            run.cluster.bootstrap, runtime=runtime, request_timeout_ms=TIMEOUT_MS
        ) as admin:
            producer = await self._producer()
            while True:
                waits = chance.random() < 0.5
                await self._fill(producer, chance.randint(3, 12), waits)
                if run.stop.is_set():
                    break
                await asyncio.sleep(chance.choice([0.0, 1.0, 5.0, 10.0]))
                self._accepts_acks = False
                await self._delete(admin)
                if chance.random() < 0.5:
                    await producer.close(timeout_ms=0)
                    producer = await self._producer()
                await self._create(admin)
            await self._fill(producer, 3, waits=True)
            await producer.close()

    async def _producer(self) -> Producer:
        return await self._run.producer(MAKER, delivery_timeout_ms=DELIVERY_MS)

    async def _delete(self, admin: Admin) -> None:
        """Ask until it is gone."""
        while True:
            try:
                await admin.delete_topics([RECREATED], timeout_ms=TIMEOUT_MS)
            except UnknownTopicOrPartitionError:
                break
            except BarnabasError as error:
                self._run.told(MAKER, error)
                await asyncio.sleep(RETRY_SECONDS)
        self._run.counts["recreated: deleted"] += 1

    async def _create(self, admin: Admin) -> None:
        """Ask until there is one with another id than before."""
        options = self._run.options
        while self._topic_id() in (None, self._known_id):
            try:
                await admin.create_topic(
                    RECREATED,
                    options.recreated,
                    options.replication_factor,
                    configs={"min.insync.replicas": str(options.min_isr)},
                    timeout_ms=TIMEOUT_MS,
                )
            except BarnabasError as error:
                self._run.told(MAKER, error)
                await asyncio.sleep(RETRY_SECONDS)
        self._run.counts["recreated: created"] += 1
        self._known_id = self._topic_id()
        self.history.append({partition: History() for partition in self.partitions})
        self._accepts_acks = True

    def _topic_id(self) -> str | None:
        """The id of the present incarnation, once each partition has a state."""
        truths = [self._run.invariants.truths.get(partition) for partition in self.partitions]
        ids = [None if truth is None else truth.topic_id for truth in truths]
        return ids[0] if len(set(ids)) == 1 else None

    async def _fill(self, producer: Producer, rounds: int, waits: bool) -> None:
        """Send to each partition; `waits`: for the answers, or what comes next meets them."""
        incarnation, waiting = len(self.history) - 1, []
        loop = asyncio.get_running_loop()
        for number in range(rounds):
            for partition in self.partitions:
                history = self.history[incarnation][partition]
                label = b"%s/%d.%d" % (MAKER.encode(), incarnation, len(history.sent))
                history.sent.append(label)
                try:
                    handle = await producer.send(RECREATED, label, partition=partition.partition)
                except BarnabasError as error:
                    self._run.told(MAKER, error)
                    continue
                waiting.append(loop.create_task(self._told(handle, incarnation, partition, label)))
            if number < rounds - 1:
                await asyncio.sleep(0.2)
        for task in waiting if waits else ():
            await task

    async def _told(
        self, handle: DeliveryHandle, incarnation: int, partition: TopicPartition, label: bytes
    ) -> None:
        """Only answers count that come before the deletion is asked for: of a later one it is not
        known which incarnation has the record."""
        try:
            offset = (await handle).offset
        except BarnabasError as error:
            self._run.told(MAKER, error)
            return
        if self._accepts_acks and incarnation == len(self.history) - 1:
            self.history[incarnation][partition].acked[label] = offset
            self._run.invariants.acked(partition, offset, label)

    # ---- the one that reads along

    async def _read(self) -> None:
        """Read from the beginning; nothing that it gets may be of an incarnation that has gone."""
        topics, loop = self._run.invariants.topics, asyncio.get_running_loop()
        gone = {tp: topics.gone(tp) for tp in self.partitions}
        async with self._run.consumer(READER) as consumer:
            consumer.assign(self.partitions)
            end = loop.time() + READER_SECONDS
            while loop.time() < end:
                for record in await consumer.poll(timeout_ms=500):
                    tp = record.topic_partition
                    label = label_of(record)
                    topics.read(tp, record.offset, label, gone[tp])
                    self._run.counts["recreated: record read"] += 1

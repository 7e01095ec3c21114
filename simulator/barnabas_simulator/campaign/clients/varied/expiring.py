"""A topic whose records expire: a producer, a reader that keeps up, and a slow one whose position
often falls out of the log."""

import asyncio
from collections import Counter
from functools import partial

from barnabas import Admin, Consumer
from barnabas.producer.handle import DeliveryHandle
from barnabas_common.errors import OffsetOutOfRangeError
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.factory import Read
from barnabas_simulator.campaign.clients.processes import run_as
from barnabas_simulator.campaign.clients.varied.run import VariedRun
from barnabas_simulator.delivery import History
from barnabas_simulator.labels import label_of

EXPIRING = "expiring"
PRODUCER, PROMPT, SLOW, JUDGE = (
    f"{EXPIRING}-{name}" for name in ("producer", "reader", "slow-reader", "judge")
)


class Expiring:
    """`history` is what the producer was told, `records` what there is in the end, and
    `starts` where the logs had started rightly by then."""

    def __init__(self, run: VariedRun) -> None:
        self._run = run
        self.partitions = [
            TopicPartition(EXPIRING, number) for number in range(run.options.expiring)
        ]
        self.history = {partition: History() for partition in self.partitions}
        self.records: Read = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._producing: asyncio.Task[None] | None = None
        self._started = Counter[str]()
        self._positions: dict[str, dict[TopicPartition, int]] = {PROMPT: {}, SLOW: {}}

    @property
    def hosts(self) -> list[str]:
        return [PRODUCER, PROMPT, SLOW, JUDGE]

    @property
    def starts(self) -> dict[TopicPartition, int]:
        truths = self._run.invariants.truths
        return {partition: truths[partition].log_start for partition in self.partitions}

    async def create_topics(self, admin: Admin) -> None:
        options = self._run.options
        self._run.invariants.topics.retain(EXPIRING, options.expiring_ms, options.expiring_bytes)
        await admin.create_topic(
            EXPIRING,
            options.expiring,
            options.replication_factor,
            configs={
                "min.insync.replicas": str(options.min_isr),
                "retention.ms": str(options.expiring_ms),
                "retention.bytes": str(options.expiring_bytes),
                "segment.bytes": str(options.expiring_segment_bytes),
            },
        )

    def start(self) -> None:
        run = self._run
        self._producing = run_as(PRODUCER, self._produce())
        for name in (PROMPT, SLOW):
            reading = run.again_and_again(name, partial(self._read, name))
            self._tasks.append(run_as(name, reading))

    async def finish(self) -> None:
        assert self._producing is not None
        await self._producing

    def tasks(self) -> list[asyncio.Task[None]]:
        return self._tasks

    async def read_back(self, bootstrap: str) -> None:
        self.records = await self._run.read_all(JUDGE, self.partitions, bootstrap)
        self._run.counts["expiring: records deleted"] += sum(self.starts.values())

    async def _produce(self) -> None:
        run, chance, number = self._run, self._run.chance(PRODUCER), 0
        waiting: list[asyncio.Task[None]] = []
        async with await run.producer(PRODUCER, compression_type=run.options.codec) as producer:
            while not run.stop.is_set():
                for partition in self.partitions:
                    label = b"%s/%d" % (PRODUCER.encode(), number)
                    self.history[partition].sent.append(label)
                    run.invariants.sent(partition, label)
                    handle = await producer.send(EXPIRING, label, partition=partition.partition)
                    told = self._told(handle, partition, label)
                    waiting.append(asyncio.get_running_loop().create_task(told))
                number += 1
                await asyncio.sleep(run.options.pause * chance.random())
            await producer.flush()
            for task in waiting:
                await task

    async def _told(self, handle: DeliveryHandle, partition: TopicPartition, label: bytes) -> None:
        offset = (await handle).offset
        self.history[partition].acked[label] = offset
        self._run.invariants.acked(partition, offset, label)

    async def _read(self, name: str) -> None:
        """Read on from where it was; the slow one sometimes sleeps for longer than records last."""
        run, chance = self._run, self._run.chance(f"{name} {self._started[name]}")
        self._started[name] += 1
        policy = run.options.expiring_reset if name == SLOW else "earliest"
        positions = self._positions[name]
        async with run.consumer(name, auto_offset_reset=policy) as consumer:
            consumer.assign(self.partitions)
            for partition in self.partitions:
                consumer.seek(partition, positions.setdefault(partition, 0))
            while True:
                try:
                    await self._poll(consumer, positions, policy)
                except OffsetOutOfRangeError:
                    run.counts["expiring: reader out of range"] += 1
                    await consumer.seek_to_beginning(*self.partitions)
                if name == SLOW and chance.random() < 0.2:
                    await asyncio.sleep(chance.choice([1.0, 5.0, 15.0]))

    async def _poll(
        self, consumer: Consumer, positions: dict[TopicPartition, int], policy: str
    ) -> None:
        checks = self._run.invariants
        for record in await consumer.poll(timeout_ms=500):
            tp = record.topic_partition
            if record.offset > positions[tp]:
                self._run.counts["expiring: reader went on where the log starts"] += 1
            checks.topics.skipped(tp, positions[tp], record.offset, policy == "latest")
            positions[tp] = record.offset + 1
            checks.consumed(tp, record.offset, label_of(record))

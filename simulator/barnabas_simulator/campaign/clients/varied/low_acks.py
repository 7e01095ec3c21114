"""Producers that wait for one acknowledgement, or for none, and one that waits for all, on one
topic: in bursts, with records of all sizes."""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas import Admin, Producer
from barnabas.producer.handle import DeliveryHandle
from barnabas_common.errors import (
    BarnabasError,
    MessageTooLargeError,
    RecordListTooLargeError,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.factory import Read
from barnabas_simulator.campaign.clients.growth import Growth
from barnabas_simulator.campaign.clients.processes import run_as
from barnabas_simulator.campaign.clients.varied.run import VariedRun
from barnabas_simulator.labels import filled

TELEMETRY = "telemetry"
MAX_MESSAGE_BYTES = 4_096
LARGE = (1_500, MAX_MESSAGE_BYTES - 200, MAX_MESSAGE_BYTES - 60, MAX_MESSAGE_BYTES + 1, 9_000)
LARGE_CHANCE = 0.05
BURST_CHANCE = 0.03
JUDGE = "telemetry-judge"


class Acked(NamedTuple):
    """The leader epoch in which the record was appended is one from `lowest` to `highest`."""

    offset: int
    lowest: int
    highest: int


@dataclass
class Sent:
    """What a producer sent to a partition, and what it was told. `acked`: by label. `sizes`: of
    the values."""

    acks: str
    sent: list[bytes] = field(default_factory=list)
    acked: dict[bytes, Acked] = field(default_factory=dict)
    refused: set[bytes] = field(default_factory=set)
    sizes: dict[bytes, int] = field(default_factory=dict)


class LowAcks:
    """`by_sender`: what each producer did. `records` and `epochs`: what there is in the end, and
    where each epoch of each log starts."""

    def __init__(self, run: VariedRun) -> None:
        self._run = run
        self._acks = run.options.low_acks.split(",")
        self._tasks: list[asyncio.Task[None]] = []
        self._others: list[asyncio.Task[None]] = []
        self.partitions = [
            TopicPartition(TELEMETRY, number) for number in range(run.options.low_acks_partitions)
        ]
        self._growth = Growth(
            run.cluster,
            run.options,
            "telemetry-grower",
            TELEMETRY,
            len(self.partitions),
            run.counts,
            run.note,
            self._grown,
        )
        self.by_sender: dict[str, dict[TopicPartition, Sent]] = {}
        self.records: Read = {}
        self.epochs: dict[TopicPartition, list[tuple[int, int]]] = {}

    @property
    def hosts(self) -> list[str]:
        return [*self._names(), *self._growth.hosts, JUDGE]

    def _names(self) -> list[str]:
        return [f"telemetry-{acks}" for acks in self._acks]

    async def create_topics(self, admin: Admin) -> None:
        options = self._run.options
        await admin.create_topic(
            TELEMETRY,
            options.low_acks_partitions,
            options.replication_factor,
            configs={
                "min.insync.replicas": str(options.min_isr),
                "max.message.bytes": str(MAX_MESSAGE_BYTES),
                "segment.bytes": str(options.low_acks_segment_bytes),
            },
        )

    def start(self) -> None:
        for name, acks in zip(self._names(), self._acks, strict=True):
            self.by_sender[name] = {partition: Sent(acks) for partition in self.partitions}
            self._tasks.append(run_as(name, self._produce(name, acks)))
        if self._run.options.growth:
            growing = self._growth.run(self._run.calm)
            self._others.append(run_as(self._growth.host, growing))

    def _grown(self, count: int) -> None:
        for number in range(len(self.partitions), count):
            partition = TopicPartition(TELEMETRY, number)
            self.partitions.append(partition)
            for sent in self.by_sender.values():
                sent[partition] = Sent(next(iter(sent.values())).acks)

    async def finish(self) -> None:
        for task in self._tasks:
            await task

    def tasks(self) -> list[asyncio.Task[None]]:
        return [*self._tasks, *self._others]

    async def read_back(self, bootstrap: str) -> None:
        self.records = await self._run.read_all(JUDGE, self.partitions, bootstrap)
        for partition in self.partitions:
            leader = self._run.invariants.state_of(partition).leader
            hosted = self._run.cluster.broker(leader).replica_manager.partitions.get(partition)
            log = None if hosted is None else hosted.log
            assert log is not None
            self.epochs[partition] = [(e.epoch, e.start_offset) for e in log.leader_epochs.entries]

    # ---- one producer

    async def _produce(self, name: str, acks: str) -> None:
        run, chance, number = self._run, self._run.chance(name), 0
        waiting: list[asyncio.Task[None]] = []
        options = run.options
        producer = await run.producer(
            name,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=acks == "all",
            max_in_flight=options.low_acks_in_flight,
            compression_type=options.codec,
            max_request_size=65_536,
        )
        async with producer:
            while not run.stop.is_set():
                is_burst = chance.random() < BURST_CHANCE
                for _ in range(options.burst if is_burst else 1):
                    known = await producer.partitions_for(TELEMETRY)
                    partition = chance.choice(self.partitions[:known])
                    label = b"%s/%d" % (name.encode(), number)
                    is_large = chance.random() < LARGE_CHANCE
                    value = filled(label, chance.choice(LARGE)) if is_large else label
                    number += 1
                    sent = self.by_sender[name][partition]
                    wait = await self._send(name, producer, partition, sent, label, value)
                    if wait is not None:
                        waiting.append(wait)
                run.counts["low acks: burst"] += is_burst and options.burst > 1
                waiting = [task for task in waiting if not _is_over(task)]
                await asyncio.sleep(options.pause * chance.random())
            await producer.flush()
            for task in waiting:
                await task

    async def _send(
        self,
        name: str,
        producer: Producer,
        partition: TopicPartition,
        sent: Sent,
        label: bytes,
        value: bytes,
    ) -> asyncio.Task[None] | None:
        sent.sent.append(label)
        sent.sizes[label] = len(value)
        lowest = min(self._known_epochs(partition))
        try:
            handle = await producer.send(TELEMETRY, value, partition=partition.partition)
        except BarnabasError as error:  # nothing was sent
            sent.refused.add(label)
            self._run.told(name, error)
            return None
        told = self._told(name, handle, partition, label, lowest)
        return asyncio.get_running_loop().create_task(told)

    async def _told(
        self,
        name: str,
        handle: DeliveryHandle,
        partition: TopicPartition,
        label: bytes,
        lowest: int,
    ) -> None:
        sent = self.by_sender[name][partition]
        try:
            metadata = await handle
        except (MessageTooLargeError, RecordListTooLargeError):
            sent.refused.add(label)
            self._run.counts["low acks: record too large"] += 1
        except BarnabasError as error:
            self._run.told(name, error)
        else:
            highest = max(self._known_epochs(partition))
            sent.acked[label] = Acked(metadata.offset, lowest, highest)

    def _known_epochs(self, partition: TopicPartition) -> list[int]:
        """The leader epochs that ZooKeeper and the brokers know now."""
        known = [one.leader_epoch for one in self._run.cluster.hosted(partition)]
        return [self._run.invariants.state_of(partition).leader_epoch, *known]


def _is_over(task: asyncio.Task[None]) -> bool:
    if task.done():
        task.result()
    return task.done()

"""The clients of a run: producers with acks=all, consumers that read along, an admin.

Each client runs the real client code on its own node of the network. What is sent, acknowledged and
read is recorded, and reported to the invariants immediately.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from barnabas import Admin, Consumer, ConsumerRecord, Producer
from barnabas.producer.handle import DeliveryHandle
from barnabas_common.errors import BarnabasError, CorruptMessageError
from barnabas_common.history.operations import Assign, FinalRead, Operation, Poll, Send
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients import damage, factory
from barnabas_simulator.campaign.clients.admin_work import AdminWork
from barnabas_simulator.campaign.clients.factory import METADATA_MAX_AGE_MS, RETRY_SECONDS, Read
from barnabas_simulator.campaign.clients.group_work import GroupRun, GroupWork
from barnabas_simulator.campaign.clients.growth import Growth
from barnabas_simulator.campaign.clients.processes import kill, run_as
from barnabas_simulator.campaign.clients.recording import as_records, recorder, text_of
from barnabas_simulator.campaign.clients.transactions.run import TransactionRun
from barnabas_simulator.campaign.clients.transactions.work import TransactionalWork
from barnabas_simulator.campaign.clients.varied.run import VariedRun
from barnabas_simulator.campaign.clients.varied.work import VariedWork
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Undo
from barnabas_simulator.campaign.options import COPIERS, ORDERS, Options
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.delivery import History
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.labels import headers_of, is_tombstone, key_of, keyed_label, label_of

TOPIC = "flights"
START_SECONDS = 60.0


class Workload:
    """`histories` by producer incarnation and partition; `seen` is what consumers have read. Both
    name records by their labels. `operations`: everything, as the checker of histories reads it.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        options: Options,
        invariants: Invariants,
        note: Callable[[str], None],
    ) -> None:
        self.partitions = [TopicPartition(TOPIC, n) for n in range(options.partitions)]
        self.producers = [f"producer-{n}" for n in range(options.producers)]
        self.consumers = [f"consumer-{n}" for n in range(options.consumers)]
        self.histories: dict[str, dict[TopicPartition, History]] = {}
        self.seen: dict[TopicPartition, dict[int, bytes]] = {p: {} for p in self.partitions}
        self.reading: dict[str, dict[TopicPartition, tuple[int, int]]] = {}
        """Where the reader at the end is, and what it reads to."""
        self.errors: Counter[str] = Counter()
        self.operations: list[Operation] = []
        self._cluster = cluster
        self._options = options
        self._invariants = invariants
        self._note = note
        self._calm = asyncio.Event()
        self._stop = asyncio.Event()
        self._started_count: Counter[str] = Counter()
        self._producing: dict[str, asyncio.Task[None]] = {}
        self._connected: dict[str, Producer] = {}
        self._others: list[asyncio.Task[None]] = []
        self._groups = GroupWork(
            GroupRun(cluster, options, TOPIC, invariants.groups, self.errors, note, self.operations)
        )
        self.transactional = TransactionRun(cluster, options, invariants, self.errors, note)
        self._transactional = TransactionalWork(self.transactional)
        self._growth = Growth(
            cluster, options, "grower", TOPIC, options.partitions, self.errors, note, self._grown
        )
        varied = VariedRun(cluster, options, invariants, self.errors, note, self._calm, self._stop)
        self.varied = VariedWork(varied, self.partitions)
        self.times: dict[TopicPartition, dict[int, int]] = {}
        """Of each record at the end its timestamp."""
        self._group_members = [n for g in options.group_ids for n in options.member_names(g)]

    @property
    def hosts(self) -> list[str]:
        """Return the hosts of all clients, including the one that reads at the end."""
        plain = [*self.producers, *self.consumers, "admin", "judge", *self._group_members]
        others = [*self._transactional.hosts, *self._growth.hosts, *self.varied.hosts]
        return [*plain, *others]

    @property
    def acked(self) -> int:
        return sum(len(h.acked) for by in self.histories.values() for h in by.values())

    @property
    def committed(self) -> int:
        """How many commits the groups were told to be stored, one for each partition."""
        return self._invariants.groups.answers.acknowledged

    def unanswered(self) -> list[int]:
        """Return for each producer how many of its requests have no answer yet."""
        return [producer.metrics().requests_in_flight for producer in self._connected.values()]

    async def start(self) -> None:
        """Create the topic and start every client."""
        async with asyncio.timeout(START_SECONDS):
            await run_as("admin", self._create_topic())
        options, partitions = self._options, self.partitions
        for name in self.producers:
            self._start_producer(name)
        self._others = [run_as(name, self._consume(name)) for name in self.consumers]
        self._groups.start()
        self._transactional.start()
        self.varied.start()
        if options.copiers:
            end, names = self._invariants.transactions.visible_end, options.copier_names
            self._invariants.groups.living(COPIERS, names, ORDERS, end)
        if options.has_admin:
            moved = [*partitions, *self.varied.movable]
            work = AdminWork(self._cluster, options, moved, self.errors, self._note)
            self._others.append(run_as("admin", work.run(self._calm)))
        if options.growth:
            self._others.append(run_as(self._growth.host, self._growth.run(self._calm)))
        async with asyncio.timeout(START_SECONDS):
            while self.acked < len(partitions):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    def calm(self) -> None:
        """Stop the admin."""
        self._calm.set()

    async def finish(self) -> None:
        """Stop sending, and wait until every record that was sent is acknowledged."""
        self._stop.set()
        for task in list(self._producing.values()):
            await task
        await self._transactional.finish()
        await self.varied.finish()

    async def close(self) -> None:
        """Stop the readers; raises what broke one of them."""
        clients = self._groups, self._transactional, self.varied
        for task in [*self._others, *(task for one in clients for task in one.tasks())]:
            if task.done():
                task.result()
            task.cancel()

    def _grown(self, count: int) -> None:
        """The topic has so many partitions now: they are used from now on."""
        for number in range(len(self.partitions), count):
            partition = TopicPartition(TOPIC, number)
            self.partitions.append(partition)
            self.seen[partition] = {}
            for history in self.histories.values():
                history[partition] = History()

    async def _create_topic(self) -> None:
        options = self._options
        runtime = self._cluster.client_runtime("admin")
        async with Admin(self._cluster.bootstrap, runtime=runtime) as admin:
            await admin.create_topic(
                TOPIC,
                options.partitions,
                options.replication_factor,
                configs=options.topic_config,
            )
            await self._transactional.create_topics(admin)
            await self.varied.create_topics(admin)

    # ---- producers

    def _start_producer(self, name: str) -> None:
        self._started_count[name] += 1
        incarnation = (
            name if self._started_count[name] == 1 else f"{name}/{self._started_count[name]}"
        )
        sender = incarnation.replace("/", ".")
        self.histories[sender] = {partition: History() for partition in self.partitions}
        self._producing[name] = run_as(incarnation, self._produce(incarnation, sender))

    def strike(self, fault: Fault) -> Undo | None:
        """Start a fault of a client; returns how to end it, None if that is impossible now."""
        if fault.kind is FaultKind.KILL_CLIENT:
            return self.kill_producer(fault.target)
        return self._groups.strike(fault) or self._transactional.strike(fault)

    def kill_producer(self, name: str) -> Undo | None:
        """kill -9: records without an acknowledgement may or may not appear in the log.

        Returns how to start it again; None if it does not run.
        """
        task = self._producing.pop(name, None)
        if task is None:
            return None
        self._connected.pop(name, None)
        incarnation = kill(self._cluster, task)
        for partition, history in self.histories[incarnation.replace("/", ".")].items():
            for value in history.sent:
                if value not in history.acked:
                    self._invariants.refused(partition, value)
        return partial(self._start_producer, name)

    async def _produce(self, incarnation: str, sender: str) -> None:
        """Send unique values to all partitions, at random intervals."""
        chance = random.Random(f"{incarnation} {self._options.seed}")
        histories, number = self.histories[sender], 0
        history = recorder(self.operations, incarnation)
        waiting: list[asyncio.Task[None]] = []
        async with await self._started_producer(incarnation) as producer:
            self._connected[history.client] = producer
            await self._know_topic(producer)
            while not self._stop.is_set():
                known = await producer.partitions_for(TOPIC)  # new ones later than others
                for partition in self.partitions[:known]:
                    label = self._label(b"%s/%d" % (sender.encode(), number), chance)
                    histories[partition].sent.append(label)
                    self._invariants.sent(partition, label)
                    send = history.begin(Send, partition=str(partition), value=text_of(label))
                    handle = await self._send(producer, partition, label)
                    acked = partial(self._acked, histories[partition], partition, label)
                    ack = self._await(handle, acked, partial(history.end, send))
                    waiting.append(asyncio.get_running_loop().create_task(ack))
                number += 1
                await asyncio.sleep(self._options.pause * chance.random() * 2)
            await producer.flush()
            for task in waiting:
                await task

    def _label(self, unique: bytes, chance: random.Random) -> bytes:
        options = self._options
        if not options.is_compacted:
            return unique
        key = b"key-%d" % chance.randrange(options.keys)
        return keyed_label(unique, key, chance.random() < options.tombstones)

    async def _send(
        self, producer: Producer, partition: TopicPartition, label: bytes
    ) -> DeliveryHandle:
        value = None if is_tombstone(label) else label
        number, headers = partition.partition, headers_of(label)
        return await producer.send(TOPIC, value, key_of(label), number, headers=headers)

    async def _started_producer(self, incarnation: str) -> Producer:
        options = self._options
        return await factory.started_producer(
            self._cluster,
            options,
            incarnation,
            told=lambda error: self._note(f"{incarnation}: {error}"),
            enable_idempotence=options.idempotent,
            compression_type=options.codec,
        )

    async def _know_topic(self, producer: Producer) -> None:
        """Wait for the topic; the broker asked may have lost all data, or be too slow."""
        while True:
            try:
                await producer.partitions_for(TOPIC)
            except BarnabasError as error:
                self._note(f"producer: {type(error).__name__}: {error}")
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _await(
        self,
        handle: DeliveryHandle,
        acked: Callable[[int], None],
        record: Callable[..., None],
    ) -> None:
        metadata = await handle
        acked(metadata.offset)
        record(offset=metadata.offset)

    def _acked(
        self, history: History, partition: TopicPartition, value: bytes, offset: int
    ) -> None:
        history.acked[value] = offset
        self._invariants.acked(partition, offset, value)

    # ---- consumers

    async def _consume(self, name: str) -> None:
        """Read from the leaders, from the beginning; start again after an error."""
        history = recorder(self.operations, name)
        while True:
            try:
                await self._read_along(name, history)
            except BarnabasError as error:
                self.errors[f"consumer: {type(error).__name__}"] += 1
                self._note(f"{name}: {type(error).__name__}: {error}")
                await asyncio.sleep(RETRY_SECONDS)

    async def _read_along(self, name: str, history: Recorder) -> None:
        async with self._consumer(name) as consumer:
            while True:
                if len(consumer.assignment()) < len(self.partitions):
                    consumer.assign(self.partitions)
                    history.note(Assign, partitions=[str(one) for one in self.partitions])
                polled = await self._poll(consumer)
                history.note(Poll, records=as_records(polled))
                for record in polled:
                    partition = TopicPartition(record.topic, record.partition)
                    value = label_of(record)
                    self.seen[partition][record.offset] = value
                    self._invariants.consumed(partition, record.offset, value)

    async def _poll(self, consumer: Consumer) -> list[ConsumerRecord]:
        """Poll again after an error about damage that a fault has done: other replicas are sound.
        Raises AssertionError if no fault has done it."""
        while True:
            try:
                return await consumer.poll(timeout_ms=500)
            except CorruptMessageError as error:
                assert damage.is_named(str(error), self._cluster.damage), str(error)
                self.errors["consumer: CorruptMessageError"] += 1

    def _consumer(self, name: str, bootstrap: str = "") -> Consumer:
        return factory.consumer(self._cluster, self._options, name, bootstrap)

    async def read_transactions(self, core: Iterable[int] | None = None) -> Read:
        """The records of committed transactions."""
        return await self._transactional.read_back(core)

    async def read_back(self, core: Iterable[int] | None = None) -> Read:
        """Every partition from its beginning to its end.

        Only the `core` is asked who leads: a deposed leader that cannot reach ZooKeeper believes
        that it leads, and has not all that its successor has acknowledged.
        """
        records: Read = {partition: [] for partition in self.partitions}
        bootstrap = self._cluster.bootstrap_of(core) if core else ""
        async with self._consumer("judge", bootstrap) as consumer:
            consumer.assign(self.partitions)
            await asyncio.sleep(2 * METADATA_MAX_AGE_MS / 1000)
            ends = await consumer.end_offsets(self.partitions)
            while True:
                at = {tp: (await consumer.position(tp), ends[tp]) for tp in self.partitions}
                self.reading["judge"] = at
                if all(position >= end for position, end in at.values()):
                    self._read_to(records, ends)
                    return records
                for record in await self._poll(consumer):
                    partition = TopicPartition(record.topic, record.partition)
                    records[partition].append((record.offset, label_of(record)))
                    self.times.setdefault(partition, {})[record.offset] = record.timestamp

    def _read_to(self, records: Read, ends: Mapping[TopicPartition, int]) -> None:
        recorder(self.operations, "judge").note(
            FinalRead,
            records={
                str(partition): [(offset, text_of(label)) for offset, label in found]
                for partition, found in records.items()
            },
            bounds={str(partition): (0, end) for partition, end in ends.items()},
        )

"""All transactional clients of a run, the faults that befall them, and those that read along."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator

from barnabas import Admin, Consumer
from barnabas.consumer.config import IsolationLevel
from barnabas_common.errors import BarnabasError, CorruptMessageError
from barnabas_common.history.operations import Assign, FinalRead, Poll
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients import factory
from barnabas_simulator.campaign.clients.factory import RETRY_SECONDS, Read
from barnabas_simulator.campaign.clients.processes import kill, run_as, virtual_loop
from barnabas_simulator.campaign.clients.recording import as_records, recorder, text_of
from barnabas_simulator.campaign.clients.transactions.clients import (
    Copier,
    OrderProducer,
    TransactionalClient,
)
from barnabas_simulator.campaign.clients.transactions.run import TransactionRun
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Undo
from barnabas_simulator.campaign.options import COPIES, ORDERS

AUDITORS: dict[str, IsolationLevel] = {
    "auditor-0": "read_uncommitted",
    "auditor-1": "read_committed",
}
JUDGE = "transaction-judge"


class TransactionalWork:
    """Nothing is done in a run without transactional clients."""

    def __init__(self, run: TransactionRun) -> None:
        self._run = run
        names = [*run.options.order_producer_names, *run.options.copier_names]
        self._processes = {name: _Process(run, name) for name in names}
        self._auditors: list[asyncio.Task[None]] = []

    @property
    def hosts(self) -> list[str]:
        return [*self._processes, *AUDITORS, JUDGE] if self._processes else []

    @property
    def partitions(self) -> list[TopicPartition]:
        return [*self._run.orders, *self._run.copies]

    async def create_topics(self, admin: Admin) -> None:
        options = self._run.options
        for topic in (ORDERS, COPIES) if self._processes else ():
            await admin.create_topic(
                topic,
                options.order_partitions,
                options.replication_factor,
                configs={"min.insync.replicas": str(options.min_isr)},
            )

    def start(self) -> None:
        for process in self._processes.values():
            process.start()
        if self._processes:
            self._auditors = [run_as(name, self._audit(name)) for name in AUDITORS]

    def strike(self, fault: Fault) -> Undo | None:
        """Start a fault of a client; returns how to end it, None if that is impossible now."""
        process = self._processes.get(fault.target)
        if process is None:
            return None
        return {
            FaultKind.KILL_TRANSACTIONAL: process.kill,
            FaultKind.PAUSE_TRANSACTIONAL: process.pause,
            FaultKind.ZOMBIE: process.replace,
        }[fault.kind]()

    async def finish(self) -> None:
        """Wait until each producer has committed one more transaction, its last."""
        self._run.stop.set()
        for name in self._run.options.order_producer_names:
            await self._processes[name].finished()

    def tasks(self) -> Iterator[asyncio.Task[None]]:
        for process in self._processes.values():
            yield from process.tasks
        yield from self._auditors

    # ---- readers

    async def _audit(self, name: str) -> None:
        """Read along, from the beginning; start again after an error."""
        history = recorder(self._run.operations, name)
        while True:
            try:
                async with self._consumer(name, AUDITORS[name]) as consumer:
                    consumer.assign(self.partitions)
                    history.note(Assign, partitions=[str(tp) for tp in self.partitions])
                    while True:
                        polled = await consumer.poll(timeout_ms=500)
                        committed = AUDITORS[name] == "read_committed"
                        records = as_records(polled)
                        history.note(Poll, records=records, read_committed=committed)
                        tell = self._run.witness
                        told = tell.read_committed if committed else tell.consumed
                        for record in polled:
                            told(record.topic_partition, record.offset, record.value or b"")
            except CorruptMessageError:
                raise  # no fault of a run damages written records: this is a violation
            except BarnabasError as error:
                self._run.told(name, error)
                await asyncio.sleep(RETRY_SECONDS)

    def _consumer(self, name: str, level: IsolationLevel, bootstrap: str = "") -> Consumer:
        cluster, options = self._run.cluster, self._run.options
        return factory.consumer(cluster, options, name, bootstrap, isolation_level=level)

    async def read_back(self, core: Iterable[int] | None = None) -> Read:
        """Both topics to their end, uncommitted for the history, and committed."""
        bootstrap = self._run.cluster.bootstrap_of(core) if core else ""
        found: Read = {}
        for level in AUDITORS.values() if self._processes else ():
            found = await self._read_all(level, bootstrap)
        return found

    async def _read_all(self, level: IsolationLevel, bootstrap: str) -> Read:
        records: Read = {tp: [] for tp in self.partitions}
        async with self._consumer(JUDGE, level, bootstrap) as consumer:
            consumer.assign(self.partitions)
            ends = await consumer.end_offsets(self.partitions)
            while any([await consumer.position(tp) < ends[tp] for tp in self.partitions]):
                for record in await consumer.poll(timeout_ms=500):
                    records[record.topic_partition].append((record.offset, record.value or b""))
        recorder(self._run.operations, JUDGE).note(
            FinalRead,
            records={str(p): [(o, text_of(v)) for o, v in r] for p, r in records.items()},
            read_committed=level == "read_committed",
            bounds={str(tp): (0, end) for tp, end in ends.items()},
        )
        return records


class _Process:
    """A client with its incarnations; there is more than one while zombies are paused."""

    def __init__(self, run: TransactionRun, name: str) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self._run = run
        self._name = name
        self._client: TransactionalClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = Counter[str]()

    def start(self) -> None:
        self._started[self._name] += 1
        count = self._started[self._name]
        incarnation = self._name if count == 1 else f"{self._name}/{count}"
        kind = Copier if self._name in self._run.options.copier_names else OrderProducer
        self._client = kind(self._run, incarnation)
        self._task = run_as(incarnation, self._client.live())
        self.tasks.append(self._task)

    async def finished(self) -> None:
        """Wait for all incarnations that were not killed."""
        while self.tasks:
            await self.tasks.pop()

    # ---- faults

    def kill(self) -> Undo | None:
        """Its transaction stays open until the next incarnation, or its timeout, aborts it."""
        if self._task is None or self._client is None:
            return None
        kill(self._run.cluster, self._task)
        self.tasks.remove(self._task)
        self._client.journal.killed()
        self._task = None
        return self.start

    def pause(self) -> Undo | None:
        """Its process stands still, perhaps in a transaction; then it continues."""
        if self._task is None or self._task.done():
            return None
        node = self._task.get_name()
        virtual_loop().pause_node(node)
        return lambda: virtual_loop().resume_node(node)

    def replace(self) -> Undo | None:
        """Another incarnation takes over while it stands still; then it continues as a zombie."""
        resume, zombie = self.pause(), self._client
        if resume is None or zombie is None:
            return None
        zombie.superseded = True
        self.start()
        return resume

"""The consumer groups of a run: members that read the topic, work on it, and commit.

Each member is a `Consumer` on its own node. Its name is unique, and so is the metadata of each
commit that it makes itself, so that the invariants can tell who sent the commit.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from barnabas import Consumer, OffsetAndMetadata
from barnabas_common.errors import BarnabasError, CorruptMessageError
from barnabas_common.history.operations import Commit, Operation, Poll, Stage
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.factory import METADATA_MAX_AGE_MS, RETRY_SECONDS
from barnabas_simulator.campaign.clients.processes import kill, run_as, virtual_loop
from barnabas_simulator.campaign.clients.recording import RecordingListener, as_records, recorder
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Undo
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants.groups.checks import GroupChecks

REQUEST_TIMEOUT_MS = 5_000
API_TIMEOUT_MS = 20_000
POLL_MS = 1_000
ENOUGH_BYTES = 100_000  # never: an answer with all that has come, at the end of its time


@dataclass(frozen=True)
class GroupRun:
    """The run that groups take part in. `errors` counts what members were told, by kind;
    `operations` is the history of the run."""

    cluster: SimulatedCluster
    options: Options
    topic: str
    checks: GroupChecks
    errors: Counter[str]
    note: Callable[[str], None]
    operations: list[Operation]


class GroupWork:
    """All members of all groups."""

    def __init__(self, run: GroupRun) -> None:
        self._members: dict[str, _Member] = {}
        for group in run.options.group_ids:
            names = run.options.member_names(group)
            self._members |= {name: _Member(run, group, name) for name in names}
            if names:
                run.checks.living(group, names, run.topic)

    def start(self) -> None:
        for member in self._members.values():
            member.start()

    def strike(self, fault: Fault) -> Undo | None:
        """Start a fault of a member; returns how to end it, None if that is impossible now."""
        member = self._members.get(fault.target)
        if member is None:
            return None
        return {
            FaultKind.KILL_MEMBER: member.kill,
            FaultKind.PAUSE_MEMBER: member.pause,
            FaultKind.STALL_MEMBER: member.stall,
            FaultKind.LEAVE_GROUP: member.leave,
        }[fault.kind]()

    def tasks(self) -> list[asyncio.Task[None]]:
        return [member.task for member in self._members.values() if member.task is not None]


class _Member:
    def __init__(self, run: GroupRun, group: str, name: str) -> None:
        self.task: asyncio.Task[None] | None = None
        self._run = run
        self._group = group
        self._name = name
        self._started_count = 0
        self._commits = 0
        self._present = asyncio.Event()
        self._working = asyncio.Event()

    def start(self) -> None:
        self._started_count += 1
        self._present.set()
        self._working.set()
        name = self._name if self._started_count == 1 else f"{self._name}/{self._started_count}"
        self._history = recorder(self._run.operations, name)
        self.task = run_as(name, self._live(name))

    # ---- faults

    def kill(self) -> Undo | None:
        """It says nothing more; the coordinator finds out by its session."""
        if self.task is None:
            return None
        kill(self._run.cluster, self.task)
        self.task = None
        return self.start

    def pause(self) -> Undo | None:
        """Its process stands still, heartbeats too; then it continues with what it knew."""
        if self.task is None:
            return None
        node = self.task.get_name()
        virtual_loop().pause_node(node)
        return lambda: virtual_loop().resume_node(node)

    def stall(self) -> Undo | None:
        """The application works for long and does not poll, while heartbeats go on."""
        if self.task is None or not self._working.is_set():
            return None
        self._working.clear()
        return self._working.set

    def leave(self) -> Undo | None:
        """It closes its consumer, and joins with another one in the end."""
        if self.task is None or not self._present.is_set():
            return None
        self._present.clear()
        return self._present.set

    # ---- work

    async def _live(self, incarnation: str) -> None:
        """Be a member, again after each error."""
        while True:
            try:
                await self._present.wait()
                await self._be_a_member(incarnation)
            except CorruptMessageError:
                raise  # no fault of a run damages written records: this is a violation
            except BarnabasError as error:
                self._told(error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _be_a_member(self, incarnation: str) -> None:
        async with self._consumer(incarnation) as consumer:
            done: dict[TopicPartition, int] = {}
            commit = None if self._commits_itself else partial(self._commit, consumer, incarnation)
            listener = _Listener(done, self._history, self._group, commit)
            consumer.subscribe([self._run.topic], listener)
            loop = asyncio.get_running_loop()
            committed_at = loop.time()
            while self._present.is_set():
                records = await consumer.poll(timeout_ms=POLL_MS)
                self._history.note(Poll, records=as_records(records), group=self._group)
                await self._working.wait()
                for record in records:
                    tp = record.topic_partition
                    self._run.checks.worked(self._group, tp, record.offset)
                    done[tp] = record.offset + 1
                due = loop.time() >= committed_at + self._run.options.commit_seconds
                if due and done and not self._commits_itself:
                    committed_at = loop.time()
                    await self._commit(consumer, incarnation, done)

    @property
    def _commits_itself(self) -> bool:
        """Whether its consumer commits automatically: every second member's does."""
        return self._name.endswith(("1", "3"))

    async def _commit(
        self, consumer: Consumer, incarnation: str, done: dict[TopicPartition, int]
    ) -> None:
        self._commits += 1
        metadata = f"{incarnation} {self._commits}"
        offsets = {tp: OffsetAndMetadata(offset, metadata) for tp, offset in done.items()}
        sent = {str(tp): offset for tp, offset in done.items()}
        commit = self._history.begin(Commit, group=self._group, offsets=sent)
        try:
            await consumer.commit(offsets)
        except BarnabasError as error:
            self._history.end(commit, Stage.INFO, error=type(error).__name__)
            self._told(error)
            return
        self._history.end(commit)
        for tp, committed in offsets.items():
            if done.get(tp) == committed.offset:
                del done[tp]

    def _told(self, error: BarnabasError) -> None:
        self._run.errors[f"member: {type(error).__name__}"] += 1
        self._run.note(f"{self._name}: {type(error).__name__}: {error}")

    def _consumer(self, incarnation: str) -> Consumer:
        options = self._run.options
        is_static = self._name in options.static_names(self._group)
        return Consumer(
            bootstrap_servers=self._run.cluster.bootstrap,
            runtime=self._run.cluster.client_runtime(incarnation),
            group_id=self._group,
            client_id=self._name,
            group_instance_id=self._name if is_static else "",
            partition_assignment_strategy=options.assignors.split(","),
            session_timeout_ms=options.member_session_ms,
            heartbeat_interval_ms=options.heartbeat_ms,
            max_poll_interval_ms=options.max_poll_ms,
            enable_auto_commit=self._commits_itself,
            auto_commit_interval_ms=int(options.commit_seconds * 1000),
            auto_offset_reset="earliest",
            fetch_min_bytes=ENOUGH_BYTES,
            fetch_max_wait_ms=options.member_fetch_ms,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            default_api_timeout_ms=API_TIMEOUT_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )


class _Listener(RecordingListener):
    """Commits what was done before its partitions go; what is lost is not committed any more."""

    def __init__(
        self,
        done: dict[TopicPartition, int],
        history: Recorder,
        group: str,
        commit: Callable[[dict[TopicPartition, int]], Awaitable[None]] | None,
    ) -> None:
        super().__init__(history, group)
        self._done = done
        self._commit = commit

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        if self._done and self._commit is not None:
            await self._commit(self._done)
        self._gone(partitions, lost=False)

    def _gone(self, partitions: Sequence[TopicPartition], lost: bool) -> None:
        super()._gone(partitions, lost)
        for tp in partitions:
            self._done.pop(tp, None)

"""Holds a run against the invariants after every event that changed something.

    checker = Invariants(cluster)        # before the cluster starts
    checker.install()
    ...                                  # faults; checker.acked(...), checker.consumed(...)
    await checker.at_rest()              # healed: liveness, and every log compared

A replica is looked at after each turn of the loop, but the rules are asked only where something
moved. Logs are compared once in `SAMPLE_SECONDS`. The first violation ends the run.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection
from typing import NoReturn, ParamSpec

from barnabas.messages.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from barnabas.runtime import Message
from barnabas.topic_partition import TopicPartition
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.broker import Broker
from barnabas_controller.leader_and_isr import NO_LEADER, LeaderAndIsr

from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import control_rules, durability_rules, liveness, replica_rules
from barnabas_simulator.invariants.image import Images, LogImage
from barnabas_simulator.invariants.log_rules import Held, log_matching, strong_isr
from barnabas_simulator.invariants.rule import Rule
from barnabas_simulator.invariants.truth import FaultBudget, Truth
from barnabas_simulator.invariants.view import (
    ClusterView,
    Replica,
    Running,
    StateChange,
    View,
    replica_of,
)
from barnabas_simulator.invariants.violation import InvariantViolation
from barnabas_simulator.loop import VirtualLoop

P = ParamSpec("P")

SAMPLE_SECONDS = 1.0
EVENTS_KEPT = 40
LEADER_CHANGES_PER_MINUTE = 12


class _Seen:
    """A replica as it was at the last look; the bare values tell fast whether it changed."""

    __slots__ = (
        "end",
        "epochs_version",
        "high_watermark",
        "isr",
        "leader_epoch",
        "leadership",
        "log",
        "partition",
        "partition_epoch",
        "replica",
        "start",
    )

    def __init__(self, partition: Partition, replica: Replica | None) -> None:
        self.partition = partition
        self.replica = replica
        self.log = log = partition.log
        self.leadership = leadership = partition.leadership
        self.isr = leadership.isr if leadership is not None else None
        self.leader_epoch = partition.leader_epoch
        self.partition_epoch = partition.partition_epoch
        if log is not None:
            self.start, self.high_watermark = log.log_start_offset, log.high_watermark
            self.end, self.epochs_version = log.log_end_offset, log.leader_epochs.version

    def is_current(self, partition: Partition) -> bool:
        log, leadership = partition.log, partition.leadership
        return (
            log is self.log
            and leadership is self.leadership
            and partition is self.partition
            and (leadership is None or leadership.isr is self.isr)
            and partition.leader_epoch == self.leader_epoch
            and partition.partition_epoch == self.partition_epoch
            and (
                log is None
                or (
                    log.high_watermark == self.high_watermark
                    and log.log_end_offset == self.end
                    and log.log_start_offset == self.start
                    and log.leader_epochs.version == self.epochs_version
                )
            )
        )


class Invariants:
    """See the module. `excused` counts unclean elections, and the losses that were allowed."""

    def __init__(self, cluster: SimulatedCluster | View, budget: FaultBudget | None = None) -> None:
        self._cluster = cluster if isinstance(cluster, SimulatedCluster) else None
        self._view: View = (
            ClusterView(cluster) if isinstance(cluster, SimulatedCluster) else cluster
        )
        self.budget = budget or FaultBudget()
        self.truths: dict[TopicPartition, Truth] = {}
        self.excused: Counter[str] = Counter()
        self.events: deque[str] = deque(maxlen=EVENTS_KEPT)
        self.checks: Counter[str] = Counter()
        self._images = Images(self._view.disks)
        self._seen: dict[tuple[str, TopicPartition], _Seen] = {}
        self._lives: list[str] = []
        self._losses: dict[int, int] = {}
        self._forgot_at: dict[int, int] = {}
        self._obeyed: dict[Broker, int] = {}
        self._unresolved: dict[TopicPartition, dict[bytes, None]] = {}
        self._healed_at: float | None = None
        self._next_sample = SAMPLE_SECONDS
        self._violation: InvariantViolation | None = None
        self._loop: VirtualLoop | None = None

    def install(self) -> None:
        """Look after every turn of the running loop, and at every order to a broker."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop, loop.after_turn = loop, self._after_turn
        if self._cluster is not None:
            self._cluster.on_order = self._on_order

    # ---- what clients report

    def sent(self, partition: TopicPartition, value: bytes) -> None:
        """A record is on its way: `acked` or `refused` must follow (L3)."""
        self._unresolved.setdefault(partition, {})[value] = None

    def refused(self, partition: TopicPartition, value: bytes) -> None:
        """The producer gave a record up and said so."""
        self._unresolved.get(partition, {}).pop(value, None)

    def acked(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """A producer with acks=all was told that the record is committed at this offset."""
        self.refused(partition, value)
        truth = self.truths.get(partition)
        if truth is not None:
            self._client_saw(truth, truth.acked, offset, value)

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """A consumer has read the record."""
        truth = self.truths.get(partition)
        if truth is not None:
            self._client_saw(truth, truth.consumed, offset, value)

    def _client_saw(self, truth: Truth, known: dict[int, bytes], offset: int, value: bytes) -> None:
        self._hold(truth.partition, durability_rules.consistent_read, truth, offset, value)
        known[offset] = value
        if offset >= truth.high_watermark:
            truth.unsettled[offset] = value

    # ---- violations

    def _hold(
        self, partition: TopicPartition | None, rule: Rule[P], *args: P.args, **kwargs: P.kwargs
    ) -> bool:
        """Ask a rule; the first one found broken ends the run after this turn."""
        self.checks[rule.name] += 1
        states = rule.broken(*args, **kwargs)
        if states is not None and self._violation is None:
            self._violation = self._violated(rule.name, partition, states)
        return states is None

    def _violated(
        self, name: str, partition: TopicPartition | None, states: str
    ) -> InvariantViolation:
        told = [] if self._cluster is None else self._cluster.story(EVENTS_KEPT)
        story = sorted([*self.events, *told], key=lambda line: float(line.split()[0]))
        return InvariantViolation(name, self._now(), partition, states, story[-EVENTS_KEPT:])

    def _end(self, violation: InvariantViolation) -> NoReturn:
        if self._loop is not None:
            self._loop.after_turn = None  # the tasks have yet to be cancelled
        raise violation

    def _now(self) -> float:
        return self._loop.time() if self._loop is not None else 0.0

    def note(self, event: str) -> None:
        """Remember an event, to be told with a violation."""
        self.events.append(f"{self._now():.3f} {event}")

    # ---- after each turn

    def _after_turn(self, nodes: set[str]) -> None:
        for change in self._view.changes():
            self._state_changed(change)
        running = self._view.running()
        lives = [member.life for member in running]
        if lives != self._lives:
            self._lives_changed(lives)
        for member in running:
            if member.life in nodes:
                self._look_at(member)
        if self._now() >= self._next_sample:
            self._next_sample = self._now() + SAMPLE_SECONDS
            self.compare_logs()
        if self._violation is not None:
            self._end(self._violation)

    def _look_at(self, member: Running) -> None:
        for partition in member.partitions:
            seen = self._seen.get((member.life, partition.topic_partition))
            if seen is None or not seen.is_current(partition):
                self._replica_changed(member, partition, seen)

    def _lives_changed(self, lives: list[str]) -> None:
        for gone in [life for life in self._lives if life not in lives]:
            self.note(f"{gone} is dead")
        for new in [life for life in lives if life not in self._lives]:
            self.note(f"{new} begins")
        self._lives = lives
        for key in [key for key in self._seen if key[0] not in lives]:
            del self._seen[key]
        for broker_id, disk in self._view.disks.items():
            if disk.losses != self._losses.get(broker_id, 0):
                self._losses[broker_id] = disk.losses
                self._disk_forgot(broker_id)

    def _disk_forgot(self, broker_id: int) -> None:
        self.note(f"the disk of broker {broker_id} forgot what was not flushed")
        self._forgot_at[broker_id] = self._view.zxid
        disk = self._view.disks[broker_id]
        for root in disk.directories("/"):
            for path in [f"/{root}", *(f"/{root}/{name}" for name in disk.directories(f"/{root}"))]:
                self._hold(None, durability_rules.checkpoints_parse, disk, path)
        for truth in self.truths.values():
            if broker_id in (*truth.state.isr, *truth.state.eligible):
                truth.lapsed.add(broker_id)
            self._check_global_loss(truth)

    def _check_global_loss(self, truth: Truth) -> None:
        if not self.budget.unsynced_leader and truth.unclean_epoch is None:
            stored = self._images.stored(truth.partition)
            self._hold(truth.partition, durability_rules.no_global_loss, stored, truth)

    # ---- ZooKeeper

    def _state_changed(self, change: StateChange) -> None:
        partition, state, replicas, controller_epoch = change
        if state is None:
            self.truths.pop(partition, None)
            return
        truth = self.truths.get(partition)
        before = truth.state if truth is not None else None
        self.note(
            f"{partition}: leader {state.leader}, epoch {state.leader_epoch}, ISR"
            f" {list(state.isr)}, version {state.partition_epoch}, by controller"
            f" {state.controller_epoch}"
        )
        self._hold(partition, control_rules.leader_in_isr, before, state, replicas)
        self._hold(partition, control_rules.writes_are_fenced, state, controller_epoch)
        if truth is None:
            truth = self.truths[partition] = Truth(partition, state, replicas)
        if control_rules.is_unclean(before, state):
            self.excused["unclean elections"] += 1
            truth.unclean_epoch, truth.forked = state.leader_epoch, True
        if state.leader != NO_LEADER:
            truth.appointed[state.leader_epoch] = state.leader
            if before is not None and before.leader != state.leader:
                truth.leader_changes.append(self._now())
        truth.state, truth.replicas = state, replicas
        truth.let_lapse(before, state, self._forgot_at)
        for running in self._view.running():
            seen = self._seen_of(running, partition)
            if seen is not None and seen.replica is not None:
                self._hold(partition, replica_rules.quorum_superset, seen.replica, state)
                self._check_candidate(truth, seen.replica)

    # ---- replicas

    def _replica_changed(self, running: Running, partition: Partition, old: _Seen | None) -> None:
        key = partition.topic_partition
        replica = replica_of(running, partition)
        self._seen[running.life, key] = _Seen(partition, replica)
        if replica is None:
            return
        self._hold(key, replica_rules.type_ok, replica)
        before = old.replica if old is not None and old.partition is partition else None
        if before is not None:
            self._hold(key, replica_rules.epoch_monotone, before, replica)
            if replica.log_end < before.log_end:
                self.note(f"{key}: truncated from {before.log_end}; {replica}")
        truth = self.truths.get(key)
        if truth is None:
            return
        if partition.leadership is not None:
            if old is None or old.leadership is not partition.leadership:
                self._leads(truth, replica, partition)
            self._hold(key, replica_rules.quorum_superset, replica, truth.state)
            self._exposed(truth, replica, partition)
        self._check_candidate(truth, replica)
        if before is not None and replica.log_end < min(before.log_end, truth.high_watermark):
            self._check_global_loss(truth)

    def _check_candidate(self, truth: Truth, replica: Replica) -> None:
        if truth.unclean_epoch is None and replica.broker_id not in truth.lapsed:
            self._hold(
                truth.partition,
                durability_rules.candidate_completeness,
                replica,
                truth.state,
                truth.high_watermark,
            )

    def _leads(self, truth: Truth, replica: Replica, partition: Partition) -> None:
        """A broker began to lead."""
        self.note(f"{truth.partition}: {replica}")
        key, epoch = truth.partition, replica.led_epoch
        assert epoch is not None
        self._hold(key, replica_rules.one_leader_per_epoch, replica, truth.appointed, truth.led)
        truth.led[epoch] = replica.broker_id
        if epoch != truth.state.leader_epoch:
            return  # deposed already, and never heard by anybody of the new epoch
        image = self._image(replica.broker_id, partition)
        unsynced = replica.broker_id in truth.lapsed and self.budget.unsynced_leader
        if truth.unclean_epoch is not None or unsynced:
            lost = truth.cut_to(image, replica.log_start)
            if lost:
                self.excused["records lost beyond the promise"] += lost
                truth.forked = True
            truth.unclean_epoch = None
            truth.lapsed.discard(replica.broker_id)
        self._hold(key, durability_rules.leader_completeness, replica, image, truth)

    def _exposed(self, truth: Truth, replica: Replica, partition: Partition) -> None:
        """A leader's high watermark moved: for the legitimate one it is the true one."""
        if (
            replica.led_epoch != truth.state.leader_epoch
            or replica.high_watermark <= truth.high_watermark
            or truth.unclean_epoch is not None
        ):
            return
        truth.expose(self._image(replica.broker_id, partition), replica.high_watermark)
        for offset, told in truth.settle():
            self._hold(truth.partition, durability_rules.consistent_read, truth, offset, told)
        for running in self._view.running():
            seen = self._seen_of(running, truth.partition)
            if seen is not None and seen.replica is not None:
                self._check_candidate(truth, seen.replica)

    def _image(self, broker_id: int, partition: Partition) -> LogImage:
        assert partition.log is not None
        return self._images.of(broker_id, partition.log.directory, partition.log.segment_offsets)

    # ---- orders

    def _on_order(self, broker: Broker, request: Message) -> Callable[[Message | None], None]:
        if not isinstance(
            request, LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
        ):
            return lambda _: None
        name = f"{type(request).__name__} to broker {broker.broker_id}"
        newest, own = self._obeyed.get(broker, 0), broker.membership.broker_epoch

        def answered(response: Message | None) -> None:
            answer = int(getattr(response, "error_code", 0))
            epoch = own if own >= 0 else broker.membership.broker_epoch
            sent_by, meant_for = request.controller_epoch, request.broker_epoch
            self._hold(None, control_rules.orders_are_fenced, name, sent_by, newest, answer)
            self._hold(None, control_rules.orders_are_for_this_life, name, meant_for, epoch, answer)
            if not answer:
                self._obeyed[broker] = max(sent_by, self._obeyed.get(broker, 0))

        return answered

    # ---- logs against logs

    def compare_logs(self) -> None:
        """I5, I6 and the epochs of the records, for all replicas that run."""
        for truth in self.truths.values():
            held = self._held(truth)
            for index, one in enumerate(held):
                self._hold(
                    truth.partition,
                    replica_rules.record_epochs_rise,
                    one.replica,
                    one.image.batches,
                )
                for other in held[index + 1 :]:
                    self._hold(truth.partition, log_matching, one, other, not truth.forked)
                if one.replica.led_epoch is not None and not truth.forked:
                    self._compare_with_isr(truth, one, held)

    def _compare_with_isr(self, truth: Truth, leader: Held, held: list[Held]) -> None:
        for member in held:
            if member is not leader and member.replica.broker_id not in truth.lapsed:
                self._hold(truth.partition, strong_isr, leader, member, truth.state)

    def _seen_of(self, running: Running, partition: TopicPartition) -> _Seen | None:
        """A broker's replica at the last look, unless it was removed since."""
        seen = self._seen.get((running.life, partition))
        if seen is None or running.partitions.get(partition) is not seen.partition:
            return None
        return seen

    def _held(self, truth: Truth) -> list[Held]:
        held = []
        for running in self._view.running():
            seen = self._seen_of(running, truth.partition)
            if seen is not None and seen.replica is not None and seen.partition.log is not None:
                held.append(Held(seen.replica, self._image(running.broker_id, seen.partition)))
        return held

    # ---- at rest

    def healed(self) -> None:
        """The faults have stopped: L6 counts from here."""
        self._healed_at = self._now()

    async def at_rest(
        self,
        within: float = 60.0,
        core: Collection[int] | None = None,
        leader_changes_per_minute: int = LEADER_CHANGES_PER_MINUTE,
    ) -> None:
        """Wait until the cluster is as it must be, then compare everything.

        `core`: the brokers that were healed, where others stay broken for ever. Raises
        InvariantViolation with the first thing that was still missing after `within` seconds.
        """
        assert self._loop is not None, "install() first"
        since = self._healed_at if self._healed_at is not None else self._now()
        deadline = self._now() + within
        await asyncio.sleep(0)  # what was done just now is looked at first
        while (missing := self._missing(core, since, leader_changes_per_minute)) is not None:
            if self._now() >= deadline:
                self._end(missing)
            await asyncio.sleep(0.1)
        for truth in self.truths.values():
            truth.forked = False
        self.compare_logs()
        for truth in self.truths.values():
            self._compare_isr_with_truth(truth)
        if self._violation is not None:
            self._end(self._violation)

    def _compare_isr_with_truth(self, truth: Truth) -> None:
        for held in self._held(truth):
            if held.replica.broker_id in truth.state.isr:
                replica, image = held
                self._hold(
                    truth.partition, durability_rules.isr_has_everything, replica, image, truth
                )

    def _missing(
        self, core: Collection[int] | None, since: float, per_minute: int
    ) -> InvariantViolation | None:
        running = {r.broker_id for r in self._view.running()}
        live = running if core is None else running & set(core)
        replicas = {
            partition: {held.replica.broker_id: held.replica for held in self._held(truth)}
            for partition, truth in self.truths.items()
        }
        rest = liveness.Rest(live, replicas, self._unresolved, since)
        for truth in self.truths.values():
            rules: list[tuple[str, str | None]] = [
                (rule.name, rule.broken(truth, rest)) for rule in liveness.LIVENESS
            ]
            settles = liveness.leadership_settles
            rules.append((settles.name, settles.broken(truth, rest, self._now(), per_minute)))
            for name, states in rules:
                if states is not None:
                    return self._violated(name, truth.partition, states)
        return None

    def state_of(self, partition: TopicPartition) -> LeaderAndIsr:
        """The state in ZooKeeper; KeyError without one."""
        return self.truths[partition].state

"""Checks the invariants of a run after every event that changed something.

    checker = Invariants(cluster)        # before the cluster starts
    checker.install()
    ...                                  # faults; checker.acked(...), checker.consumed(...)
    await checker.at_rest()              # healed: liveness, and every log compared

Replicas are inspected after each turn of the loop, but the rules are asked only where something has
changed. Logs are compared once every `SAMPLE_SECONDS`. The first violation ends the run.
"""

import asyncio
import posixpath
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from barnabas_broker.log.checkpoint.checkpoint_file import decode_offsets
from barnabas_broker.log.manager.offset_checkpoints import RECOVERY_POINTS
from barnabas_broker.replica.partition.partition import Partition
from barnabas_common.runtime import Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import control_rules, durability_rules, liveness, replica_rules
from barnabas_simulator.invariants.belief_rules import BeliefChecks
from barnabas_simulator.invariants.compaction.checks import CompactionChecks
from barnabas_simulator.invariants.controller_requests import ControllerRequests, all_of
from barnabas_simulator.invariants.excuses import Excuses
from barnabas_simulator.invariants.findings import Broken, Findings
from barnabas_simulator.invariants.groups.checks import GroupChecks
from barnabas_simulator.invariants.log_rules import Held, log_matching, strong_isr
from barnabas_simulator.invariants.logs.image import Images, LogImage
from barnabas_simulator.invariants.producer_rules import ProducerSamples, check_producers
from barnabas_simulator.invariants.reports import ClientReports
from barnabas_simulator.invariants.topics.checks import TopicChecks
from barnabas_simulator.invariants.truth import FaultBudget, Truth, accept_copy, end_doubt
from barnabas_simulator.invariants.view import (
    NO_CONTROLLER,
    ClusterView,
    Replica,
    Running,
    Seen,
    StateChange,
    View,
    Watcher,
    replica_of,
)
from barnabas_simulator.loop import VirtualLoop

SAMPLE_SECONDS = 1.0
LEADER_CHANGES_PER_MINUTE = 12


class Invariants(ClientReports):
    """See the module. `excused` counts unclean elections and permitted losses.

    `delete_retention_ms`: of the topics that are compacted; no record of another may go.
    """

    def __init__(
        self,
        cluster: SimulatedCluster | View,
        budget: FaultBudget | None = None,
        delete_retention_ms: Mapping[str, int] | None = None,
    ) -> None:
        self._cluster = cluster if isinstance(cluster, SimulatedCluster) else None
        self._view: View = (
            ClusterView(cluster) if isinstance(cluster, SimulatedCluster) else cluster
        )
        self.budget = budget or FaultBudget()
        super().__init__(Findings(self._cluster), {})
        self._hold = self.findings.hold
        self.excused: Counter[str] = Counter()
        self.watchers: list[Watcher] = []
        self._images = Images(self._view.disks, delete_retention_ms or {})
        self._compaction = CompactionChecks(
            self._view, self.findings, self._images, self.truths, delete_retention_ms or {}
        )
        self.groups = GroupChecks(self._view, self.findings, self._images, self.truths)
        self.topics = TopicChecks(self._view, self.findings, self.truths)
        self._seen: dict[str, dict[TopicPartition, Seen]] = {}
        self._running: Sequence[Running] = []
        self._samples = ProducerSamples()
        self._losses: dict[int, int] = {}
        self._beliefs = BeliefChecks(
            self._view, self.findings, self._images, self._losses, self.budget
        )
        self._excuses = Excuses(self.findings, self._images, self.budget, self.excused)
        self._forgot_at: dict[int, int] = {}
        self._healed_at: float | None = None
        self._next_sample = SAMPLE_SECONDS

    def install(self) -> None:
        """Check after every turn of the running loop, and every controller request."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.findings.loop, loop.after_turn = loop, self._after_turn
        if self._cluster is not None:
            accept = partial(accept_copy, self._view, self._images)
            known = self.truths, self._forgot_at, self._state_changed
            self._cluster.zookeeper.acceptances.append(partial(accept, *known))
            self._cluster.observers[Service.CONTROL] = ControllerRequests(self.findings)
            answers = self.groups.answers, self.transactions.answers
            self._cluster.observers[Service.COORDINATOR] = all_of(*answers)
            self._cluster.observers[Service.REPLICA] = self.transactions.answers
        for broker_id, disk in self._view.disks.items():
            disk.on_rename = partial(self._renamed, broker_id)

    # ---- after each turn

    def _after_turn(self, nodes: set[str]) -> None:
        for change in self._view.changes():
            self._state_changed(change)
        running = self._view.running()
        if running is not self._running:
            self._running_changed(running)
        for member in running:
            if member.incarnation in nodes:
                self._look_at(member)
        if self.findings.now() >= self._next_sample:
            self._next_sample = self.findings.now() + SAMPLE_SECONDS
            self.compare_logs()
        self.groups.answers.settle()
        self.transactions.answers.settle()
        self.findings.raise_first()

    def _look_at(self, member: Running) -> None:
        known = self._seen[member.incarnation]
        for partition in member.partitions:
            seen = known.get(partition.topic_partition)
            if seen is None or not seen.is_current(partition):
                self._replica_changed(member, partition, seen)
        self._beliefs.hosting(member, self.truths)
        self.groups.memory.look_at(member)

    def _running_changed(self, running: Sequence[Running]) -> None:
        self._running = running
        incarnations = [member.incarnation for member in running]
        for gone in [incarnation for incarnation in self._seen if incarnation not in incarnations]:
            self.findings.note(f"{gone} is dead")
            self._beliefs.ended(gone)
            del self._seen[gone]
        for new in [incarnation for incarnation in incarnations if incarnation not in self._seen]:
            self.findings.note(f"{new} begins")
            self._seen[new] = {}
        losses = {broker_id: disk.losses for broker_id, disk in self._view.disks.items()}
        forgot = [b for b, count in losses.items() if count != self._losses.get(b, 0)]
        if forgot:
            self._losses.update(losses)
            self._disks_forgot(forgot)

    def _disks_forgot(self, brokers: list[int]) -> None:
        for broker_id in brokers:
            self.findings.note(f"the disk of broker {broker_id} forgot what was not flushed")
            self._forgot_at[broker_id] = self._view.zxid
            disk = self._view.disks[broker_id]
            for root in disk.roots:
                for path in [root, *(f"{root}/{name}" for name in disk.directories(root))]:
                    self._hold(None, durability_rules.checkpoints_parse, disk, path)
        self._excuses.forgot(brokers, self.truths)
        for truth in self.truths.values():
            self._check_global_loss(truth)

    def _renamed(self, broker_id: int, path: str) -> None:
        """A file got its name; if it has recovery points, they are on the disk now."""
        self._compaction.renamed(broker_id, path)
        directory, name = posixpath.split(path)
        if name != RECOVERY_POINTS:
            return
        disk = self._view.disks[broker_id]
        data = bytes(disk.look_into(directory)[name].data)
        offsets = decode_offsets(data)
        folders = {str(name) for name in offsets} & {*disk.directories(directory)}
        images = {folder: self._images.of(broker_id, f"{directory}/{folder}") for folder in folders}
        self._hold(None, durability_rules.recovery_points_are_flushed, path, offsets, images)

    def _check_global_loss(self, truth: Truth) -> None:
        if not (self.budget.unsynced_leader or truth.all_lapsed) and truth.unclean_epoch is None:
            stored = self._images.stored(truth.partition)
            self._hold(truth.partition, durability_rules.no_global_loss, stored, truth)

    # ---- ZooKeeper

    def _state_changed(self, change: StateChange) -> None:
        partition, state, replicas, controller_epoch, topic_id = change
        self.topics.state_changed(change, self.truths.get(partition))
        if state is None:
            self.truths.pop(partition, None)
            return
        truth = self.truths.get(partition)
        before = truth.state if truth is not None else None
        self.findings.note(
            f"{partition}: leader {state.leader}, epoch {state.leader_epoch}, ISR"
            f" {list(state.isr)}, version {state.partition_epoch}, by controller"
            f" {state.controller_epoch}",
            partition,
        )
        for watcher in self.watchers:
            watcher.state_changed(partition, before, state, replicas)
        newest = control_rules.NO_EPOCH if truth is None else max(truth.elected, default=-1)
        trusted = None if truth is not None and truth.is_restored else before
        self._hold(partition, control_rules.leader_in_isr, trusted, state, replicas, newest)
        self._hold(partition, control_rules.writes_are_fenced, state, controller_epoch)
        if truth is None:
            keyed = self._compaction.keyed(partition.topic)
            truth = self.truths[partition] = Truth(partition, state, replicas, keyed=keyed)
        if before is not None and controller_epoch == NO_CONTROLLER:
            truth.was_set_back |= state.leader_epoch < before.leader_epoch
        if state.leader != NO_LEADER:
            truth.elected[state.leader_epoch] = state.leader
            if before is not None and before.leader != state.leader:
                truth.leader_changes.append(self.findings.now())
        truth.state, truth.replicas, truth.topic_id = state, replicas, topic_id
        truth.let_lapse(before, state, self._forgot_at)
        if control_rules.is_unclean(before, state):
            self._excuses.is_unclean(truth)
        for running in self._view.running():
            seen = self._seen_of(running, partition)
            if seen is not None and seen.replica is not None:
                self._hold(partition, replica_rules.quorum_superset, seen.replica, state)
                self._check_candidate(truth, seen.replica)
        self._beliefs.state_changed(truth)

    # ---- replicas

    def _replica_changed(self, running: Running, partition: Partition, old: Seen | None) -> None:
        key = partition.topic_partition
        replica = replica_of(running, partition)
        self._seen[running.incarnation][key] = Seen(partition, replica)
        if replica is None:
            return
        self._hold(key, replica_rules.type_ok, replica)
        before = old.replica if old is not None and old.partition is partition else None
        for watcher in self.watchers:
            watcher.replica_changed(before, replica)
        if before is not None:
            self._hold(key, replica_rules.epoch_monotone, before, replica)
            self.transactions.changed(key, before, replica)
            if replica.log_end < before.log_end:
                self.findings.note(f"{key}: truncated from {before.log_end}; {replica}", key)
        truth = self.truths.get(key)
        if truth is None:
            return
        if partition.leadership is not None:
            if old is None or old.leadership is not partition.leadership:
                self._leads(truth, replica, partition)
            self._hold(key, replica_rules.quorum_superset, replica, truth.state)
            self._exposed(truth, replica, partition)
        image = partial(self._image, replica.broker_id, partition)
        self.topics.replica_changed(truth, replica, image)
        self._check_candidate(truth, replica)
        has_shrunk = before is not None and replica.log_end < before.log_end
        self._beliefs.replica_changed(truth, running, partition, replica, has_shrunk)
        if before is not None and replica.log_end < min(before.log_end, truth.high_watermark):
            self._check_global_loss(truth)

    def _check_candidate(self, truth: Truth, replica: Replica) -> None:
        is_excused = truth.all_lapsed or truth.is_in_doubt or truth.unclean_epoch is not None
        if not is_excused and replica.broker_id not in truth.lapsed:
            rule, end = durability_rules.candidate_completeness, truth.high_watermark
            lost = self._view.lost_nothing_since
            self._hold(truth.partition, rule, replica, truth.state, end, lost)

    def _leads(self, truth: Truth, replica: Replica, partition: Partition) -> None:
        """Check a broker that became leader."""
        self.findings.note(f"{truth.partition}: {replica}", truth.partition)
        key, epoch = truth.partition, replica.led_epoch
        assert epoch is not None
        leading = {held.replica.led_epoch for held in self._held(truth, but=replica)}
        if epoch not in leading and truth.may_be_led_again(epoch, self._images):
            truth.led.pop(epoch, None)
        self._hold(key, replica_rules.one_leader_per_epoch, replica, truth.elected, truth.led)
        truth.led[epoch] = replica.broker_id
        if epoch != truth.led_epoch:
            return  # already deposed; a later epoch has been elected
        image = self._image(replica.broker_id, partition)
        self._excuses.leads(truth, replica, image)
        self._hold(key, durability_rules.leader_completeness, replica, image, truth)
        check_producers(self.findings, replica, partition, image)

    def _exposed(self, truth: Truth, replica: Replica, partition: Partition) -> None:
        """Take over the high watermark of the legitimate leader as the true one. It is legitimate
        until a leader has started that was elected uncleanly."""
        epoch = replica.led_epoch
        assert epoch is not None
        is_legitimate = epoch == truth.led_epoch and truth.unclean_epoch is None
        if truth.unclean_epoch is not None:
            is_legitimate = epoch < truth.unclean_epoch and epoch == max(truth.led, default=epoch)
        if not is_legitimate and truth.unclean:
            image = self._image(replica.broker_id, partition)
            self._excuses.deposed_exposed(truth, replica, image)
        if not is_legitimate or replica.high_watermark <= truth.high_watermark:
            return
        image, known = self._image(replica.broker_id, partition), truth.high_watermark
        truth.expose(image, replica.high_watermark)
        self.groups.written.exposed(truth, image, known)
        self.transactions.exposed(truth, image, known)
        for offset, told in truth.settle():
            self._hold(truth.partition, durability_rules.consistent_read, truth, offset, told)
        for running in self._view.running():
            seen = self._seen_of(running, truth.partition)
            if seen is not None and seen.replica is not None:
                self._check_candidate(truth, seen.replica)

    def _image(self, broker_id: int, partition: Partition) -> LogImage:
        assert partition.log is not None
        return self._images.of(broker_id, partition.log.directory, partition.log.segments())

    # ---- logs against logs

    def compare_logs(self) -> None:
        """Check I5, I6, I13 to I17, I23 and the epochs of the records of all running replicas."""
        with self.findings.sampling():
            self._compare_logs()

    def _compare_logs(self) -> None:
        for running in self._view.running():
            for partition in running.partitions:
                self._beliefs.check_followers(running, partition)
                replica = replica_of(running, partition)
                if replica is not None and not running.waits_for_truncation(partition):
                    image = self._image(running.broker_id, partition)
                    if self._samples.is_new(replica, partition, image):
                        check_producers(self.findings, replica, partition, image)
                        self.transactions.look_at(replica, partition, image)
        for truth in self.truths.values():
            held = self._held(truth)
            end_doubt(truth, [one.replica for one in held])
            self._excuses.look_whether_agreed(truth, held)
            for index, one in enumerate(held):
                self._compaction.look_at(truth, one.replica.broker_id)
                self._hold(
                    truth.partition,
                    replica_rules.record_epochs_rise,
                    one.replica,
                    one.image.batches,
                )
                for other in held[index + 1 :]:
                    self._hold(truth.partition, log_matching, one, other, not truth.forked)
                if one.replica.led_epoch is not None and not (truth.forked or truth.is_in_doubt):
                    self._compare_with_isr(truth, one, held)
        self.groups.memory.sample()

    def _compare_with_isr(self, truth: Truth, leader: Held, held: list[Held]) -> None:
        for member in held:
            if member is not leader and member.replica.broker_id not in truth.lapsed:
                self._hold(truth.partition, strong_isr, leader, member, truth.state)

    def _seen_of(self, running: Running, partition: TopicPartition) -> Seen | None:
        """Return a broker's replica at the last look, unless it has been removed since."""
        seen = self._seen.get(running.incarnation, {}).get(partition)
        if seen is None or running.partitions.get(partition) is not seen.partition:
            return None
        return seen

    def _held(self, truth: Truth, but: Replica | None = None) -> list[Held]:
        held = []
        for running in self._view.running():
            seen = self._seen_of(running, truth.partition)
            if seen is None or seen.replica is but:
                continue
            if seen.replica is not None and seen.partition.log is not None:
                held.append(Held(seen.replica, self._image(running.broker_id, seen.partition)))
        return held

    # ---- at rest

    def healed(self) -> None:
        """Record that the faults have stopped: L6 counts from here."""
        self._healed_at = self.findings.now()

    async def at_rest(
        self,
        within: float = 60.0,
        core: Collection[int] | None = None,
        leader_changes_per_minute: int = LEADER_CHANGES_PER_MINUTE,
    ) -> None:
        """Wait until the liveness rules hold, then compare everything.

        `core`: the brokers that were healed, if others stay broken. Raises InvariantViolation with
        the first rule that does not hold after `within` seconds.
        """
        assert self.findings.loop is not None, "install() first"
        since = self._healed_at if self._healed_at is not None else self.findings.now()
        deadline = self.findings.now() + within
        await asyncio.sleep(0)  # let the checker see the latest changes first
        while (missing := self._missing(core, since, leader_changes_per_minute)) is not None:
            if self.findings.now() >= deadline:
                self.findings.end_late(missing, since)
            await asyncio.sleep(0.1)
        for truth in self.truths.values():
            truth.forked = False
        self._samples.forget()
        self.compare_logs()
        with self.findings.sampling():
            for truth in self.truths.values():
                self._compare_isr_with_truth(truth)
        self.findings.raise_first()

    def _compare_isr_with_truth(self, truth: Truth) -> None:
        for held in self._held(truth):
            if held.replica.broker_id in truth.state.isr:
                replica, image = held
                self._hold(
                    truth.partition, durability_rules.isr_has_everything, replica, image, truth
                )

    def _missing(
        self, core: Collection[int] | None, since: float, per_minute: int
    ) -> Broken | None:
        running = {r.broker_id for r in self._view.running()}
        live = running if core is None else running & set(core)
        replicas = {
            partition: {held.replica.broker_id: held.replica for held in self._held(truth)}
            for partition, truth in self.truths.items()
        }
        fetching = liveness.fetching(self._view.running(), self.findings.now())
        rest = liveness.Rest(live, replicas, self._unresolved, since, fetching)
        for truth in self.truths.values():
            rules: list[tuple[str, str | None]] = [
                (rule.name, rule.broken(truth, rest)) for rule in liveness.LIVENESS
            ]
            settles = liveness.leadership_settles
            rules.append(
                (settles.name, settles.broken(truth, rest, self.findings.now(), per_minute))
            )
            for name, states in rules:
                if states is not None:
                    return name, truth.partition, states
        return self.groups.missing() or self.transactions.missing(replicas)

    def stuck(self, readers: liveness.Readers, core: Collection[int] | None = None) -> None:
        """Raise what keeps clients from their end in time: the first liveness rule that does not
        hold, or the partitions where a reader's position (and end) stand still."""
        since = self._healed_at if self._healed_at is not None else self.findings.now()
        missing = self._missing(core, since, LEADER_CHANGES_PER_MINUTE)
        if missing is None:
            states = liveness.readers_progress.broken(readers)
            missing = liveness.readers_progress.name, None, states or ""
        self.findings.end_late(missing, since)

    def committed(self) -> dict[TopicPartition, dict[int, bytes]]:
        """Return the labels of all records of the compacted partitions that were committed."""
        return {p: truth.keyed.labels for p, truth in self.truths.items() if truth.keyed}

    def state_of(self, partition: TopicPartition) -> LeaderAndIsr:
        """Return the state in ZooKeeper; KeyError without one."""
        return self.truths[partition].state

"""Invariants of what one broker believes and another one has: I22, I23, I24.

Each is broken some time before anything is lost.
"""

from collections.abc import Mapping

from barnabas_broker.replica.partition.partition import Partition
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.logs.image import Images
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.truth import FaultBudget, Truth
from barnabas_simulator.invariants.view import Replica, Running, View


@rule("I22 TrueHighWatermark")
def high_watermark_is_true(
    high_watermark: int, claimed_by: str, ends: Mapping[int, int], state: LeaderAndIsr
) -> str | None:
    """No replica has a high watermark above the true one, whether from a leader, from its leader's
    answers, or from a checkpoint right after a start.

    The true one is not what a leader was seen with: a deposed leader may move it rightly, by
    fetches that were on their way. It is the most that any leader could have rightly: the lowest of
    `ends`, the log ends of those that may be elected and whose disks have lost nothing.
    """
    below = {broker_id: end for broker_id, end in ends.items() if end < high_watermark}
    if not below:
        return None
    return (
        f"the high watermark {high_watermark} of {claimed_by} is above the true one: of those that"
        f" may be elected, {sorted(below)} end at {list(below.values())}; {state}"
    )


@rule("I23 TrueBelief")
def belief_is_true(
    leader: int, leader_epoch: int, follower: int, believed_end: int, log_end: int
) -> str | None:
    """A follower has what its leader believes it has, in the leader epoch and the broker epoch of
    the fetch that proved it. (Vanlightly, the leader's view of `peerEndOffset`.)"""
    if log_end >= believed_end:
        return None
    return (
        f"leader {leader} of epoch {leader_epoch} believes that the log of broker {follower} ends"
        f" at {believed_end}, and it ends at {log_end}"
    )


@rule("I24 MemberHosts")
def member_hosts(broker_id: int, partition: TopicPartition, state: LeaderAndIsr) -> str | None:
    """A running member of the ISR that has once taken its role hosts the partition. Asked for
    brokers that have and do not; `state` is in ZooKeeper now, and the topic is not being deleted.
    """
    if broker_id not in state.isr:
        return None
    return f"broker {broker_id} does not host {partition} any more and is in the ISR; {state}"


class BeliefChecks:
    """Asks the three rules where something has changed. `losses` counts the losses of each disk
    that the checker has taken into account."""

    def __init__(
        self,
        view: View,
        findings: Findings,
        images: Images,
        losses: Mapping[int, int],
        budget: FaultBudget,
    ) -> None:
        self._view = view
        self._hold = findings.hold
        self._images = images
        self._losses = losses
        self._budget = budget
        self._taken: dict[str, dict[TopicPartition, str | None]] = {}

    def replica_changed(
        self,
        truth: Truth,
        member: Running,
        partition: Partition,
        replica: Replica,
        has_shrunk: bool,
    ) -> None:
        """A broker's replica is new, or another than it was; `has_shrunk`: so is its log."""
        key = truth.partition
        self._taken.setdefault(member.incarnation, {})[key] = replica.topic_id
        self._check_claim(truth, replica)
        self.check_followers(member, partition)
        if has_shrunk:
            for other in self._view.running():
                led = other.partitions.get(key)
                if led is not None:
                    self.check_followers(other, led)

    def state_changed(self, truth: Truth) -> None:
        """Others may be elected, or are in the ISR."""
        self._check_candidates(truth)
        for member in self._view.running():
            self._check_hosting(member, truth)

    def hosting(self, member: Running, truths: Mapping[TopicPartition, Truth]) -> None:
        """Whether a broker hosts what it must; cheap unless it has dropped a replica."""
        taken = self._taken.get(member.incarnation, {})
        if len(member.partitions) < len(taken):
            for key in taken:
                if key in truths:
                    self._check_hosting(member, truths[key])

    def ended(self, incarnation: str) -> None:
        self._taken.pop(incarnation, None)

    def _check_hosting(self, member: Running, truth: Truth) -> None:
        key, taken = truth.partition, self._taken.get(member.incarnation, {})
        if (
            self._budget.vanished_replica
            or key not in taken
            or member.partitions.get(key) is not None
        ):
            return
        is_of_this_topic = truth.topic_id in (None, taken[key])
        if is_of_this_topic and not self._view.is_to_be_deleted(key.topic):
            self._hold(key, member_hosts, member.broker_id, key, truth.state)

    # ---- high watermarks

    def _check_claim(self, truth: Truth, replica: Replica) -> None:
        if truth.topic_id not in (None, replica.topic_id) or _is_excused(truth):
            return
        if replica.high_watermark > max(truth.high_watermark, truth.claimed):
            truth.claimed, truth.claimed_by = replica.high_watermark, str(replica)
        self._check_candidates(truth)

    def _check_candidates(self, truth: Truth) -> None:
        if truth.claimed <= truth.high_watermark or _is_excused(truth):
            return  # I4b holds the candidates to what a legitimate leader has exposed
        self._hold(
            truth.partition,
            high_watermark_is_true,
            truth.claimed,
            truth.claimed_by,
            self._ends(truth),
            truth.state,
        )

    def _ends(self, truth: Truth) -> dict[int, int]:
        """The log ends of those that may be elected, as far as they are known."""
        key, running = truth.partition, {m.broker_id: m for m in self._view.running()}
        stored, ends = self._images.stored(key), {}
        for broker_id in truth.may_be_elected:
            member = running.get(broker_id)
            partition = None if member is None else member.partitions.get(key)
            if partition is not None:
                if partition.log is not None:
                    ends[broker_id] = partition.log.log_end_offset
            elif self._view.disks[broker_id].losses == self._losses.get(broker_id, 0):
                image = stored.get(broker_id)
                ends[broker_id] = 0 if image is None else max(image.end, image.last_base)
        return ends

    # ---- what leaders believe

    def check_followers(self, leader: Running, partition: Partition) -> None:
        """What a leader believes of its followers; nothing if it does not lead."""
        leadership = partition.leadership
        if leadership is None:
            return
        key, running = partition.topic_partition, None
        for broker_id, follower in leadership.followers.items():
            fetching = partition.delayed_operations.followers.get(broker_id)
            if fetching is None or fetching.noted_epoch != leadership.epoch:
                continue  # not proved in this session
            running = running or {m.broker_id: m for m in self._view.running()}
            member = running.get(broker_id)
            if member is None or member.broker_epoch != fetching.session.broker_epoch:
                continue
            replica = member.partitions.get(key)
            if (
                replica is not None
                and replica.log is not None
                and replica.leader_epoch == leadership.epoch
            ):
                self._hold(
                    key,
                    belief_is_true,
                    leader.broker_id,
                    leadership.epoch,
                    broker_id,
                    follower.log_end_offset,
                    replica.log.log_end_offset,
                )


def _is_excused(truth: Truth) -> bool:
    """Logs may differ: a loss was excused, or a leader has not started yet that may lack some."""
    return truth.forked or truth.all_lapsed or truth.unclean_epoch is not None

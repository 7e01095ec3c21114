"""Which reassignments are legal, and when a reassignment is complete: pure decisions.

A partition under reassignment is assigned to the target replicas and, after them, the original
replicas that will be removed. `adding` and `removing` name the replicas that differ, so that any
controller can compute both ends from the assignment (KIP-455):

    original = replicas - adding        target = replicas - removing
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from barnabas_common.errors.error_code import ErrorCode

from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import ReplicaAssignment


@dataclass(frozen=True)
class Rejected:
    """The request is refused; the error and the reason are for its sender."""

    code: ErrorCode
    reason: str


def original_of(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """The replicas before the reassignment."""
    return tuple(r for r in assignment.replicas if r not in assignment.adding)


def target_of(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """The replicas after the reassignment."""
    return tuple(r for r in assignment.replicas if r not in assignment.removing)


def reassigned(assignment: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
    """The assignment while the partition moves from its original replicas to `target`.

    If the target is the original set (after a cancel, or if only the order changes), nothing is
    added or removed.
    """
    original = original_of(assignment)
    leaving = tuple(r for r in original if r not in target)
    adding = tuple(r for r in target if r not in original)
    return ReplicaAssignment((*target, *leaving), adding, leaving)


def is_complete(
    assignment: ReplicaAssignment, state: LeaderAndIsr | None, online: Collection[int]
) -> bool:
    """Whether the replicas to be removed are no longer needed.

    Every target replica must be in the ISR, and at least one of them online. (Kafka does not
    require the second.)
    """
    if not assignment.is_being_reassigned:
        return True
    if state is None:
        return False
    target = target_of(assignment)
    return set(target) <= set(state.isr) and any(r in online for r in target)


def judge(
    current: ReplicaAssignment, target: Sequence[int] | None, alive: Collection[int]
) -> ReplicaAssignment | Rejected:
    """The assignment with which a reassignment begins; a target of None cancels the present one.

    The checks and their order are Kafka's (`KafkaController.validateReplicas`,
    `maybeBuildReassignment`).
    """
    if target is None:
        if not current.is_being_reassigned:
            return Rejected(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no reassignment is in progress")
        return reassigned(current, original_of(current))
    illegal = _illegal(target)
    if illegal is not None:
        return Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, illegal)
    wanted = reassigned(current, target)
    absent = [replica for replica in wanted.adding if replica not in alive]
    if absent:
        return Rejected(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"brokers {absent} are to be added and are not alive; alive are {sorted(alive)}",
        )
    if not current.replicas:
        return Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition does not exist")
    return wanted


def _illegal(target: Sequence[int]) -> str | None:
    if not target:
        return "the target has no replicas"
    if len(set(target)) != len(target):
        return f"the target names a broker twice: {list(target)}"
    if any(replica < 0 for replica in target):
        return f"the target names a broker below 0: {list(target)}"
    return None


def removed_replicas(before: ReplicaAssignment, after: ReplicaAssignment) -> tuple[int, ...]:
    """The replicas of `before` that `after` does not have."""
    return tuple(r for r in before.replicas if r not in after.replicas)

"""One partition moves to other brokers: what may be asked, and when it is done. Pure decisions.

A partition under reassignment is assigned to the union of where it goes and where it was: the
target replicas first, then those of the original ones that are to leave. `adding` and `removing`
say which of them are on their way in and out, and with that both ends can be told apart again,
whoever becomes controller (KIP-455):

    original = replicas - adding        target = replicas - removing
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from barnabas.error_code import ErrorCode

from barnabas_controller.leader_and_isr import LeaderAndIsr
from barnabas_controller.znodes import ReplicaAssignment


@dataclass(frozen=True)
class Rejected:
    """Not legal; nothing changes."""

    code: ErrorCode
    reason: str


def original_of(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """Where the partition was before it was reassigned."""
    return tuple(r for r in assignment.replicas if r not in assignment.adding)


def target_of(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """Where the partition will be in the end."""
    return tuple(r for r in assignment.replicas if r not in assignment.removing)


def in_progress(assignment: ReplicaAssignment) -> bool:
    """Whether the partition is on its way."""
    return bool(assignment.adding or assignment.removing)


def reassigned(assignment: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
    """The assignment on the way from where the partition originally was to `target`.

    Target and original are the same set after a cancel, and where only the order changes: then
    nothing is on its way.
    """
    original = original_of(assignment)
    leaving = tuple(r for r in original if r not in target)
    adding = tuple(r for r in target if r not in original)
    return ReplicaAssignment((*target, *leaving), adding, leaving)


def is_complete(
    assignment: ReplicaAssignment, state: LeaderAndIsr | None, online: Collection[int]
) -> bool:
    """Whether the replicas that leave are no longer needed.

    Every target replica is in sync and one of them can lead. The second is not Kafka's: there the
    last in-sync replica completes a reassignment even while it is dead.
    """
    if not in_progress(assignment):
        return True
    if state is None:
        return False
    target = target_of(assignment)
    return set(target) <= set(state.isr) and any(r in online for r in target)


def judge(
    current: ReplicaAssignment, target: Sequence[int] | None, live: Collection[int]
) -> ReplicaAssignment | Rejected:
    """What the assignment of a partition becomes; a target of None cancels.

    `live` are the brokers that are registered and not shutting down. The checks and their order
    are Kafka's (`KafkaController.validateReplicas`, `maybeBuildReassignment`).
    """
    if target is None:
        if not in_progress(current):
            return Rejected(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "nothing is under way")
        return reassigned(current, original_of(current))
    illegal = _illegal(target)
    if illegal is not None:
        return Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, illegal)
    wanted = reassigned(current, target)
    absent = [replica for replica in wanted.adding if replica not in live]
    if absent:
        return Rejected(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"to be added are brokers that are not live: {absent}; live are {sorted(live)}",
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


def leaving(before: ReplicaAssignment, after: ReplicaAssignment) -> tuple[int, ...]:
    """The replicas that one assignment has and the other has not."""
    return tuple(r for r in before.replicas if r not in after.replicas)

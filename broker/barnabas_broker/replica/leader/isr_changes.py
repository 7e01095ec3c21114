"""The larger or smaller ISR that a leader proposes, and the effect of the answer (KIP-497).

Plain functions. `Leadership` applies what they return, and `AlterPartitionManager` sends the
proposals to the controller.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import AlteredPartition

from barnabas_broker.replica.leader.in_sync import (
    InSyncReplicas,
    RemoteReplica,
    is_follower_in_sync,
)


class Proposal(NamedTuple):
    """The ISR to ask the controller for, and why."""

    isr: InSyncReplicas
    cause: str


def expansion(
    isr: InSyncReplicas, follower: RemoteReplica, high_watermark: int, epoch_start_offset: int
) -> Proposal | None:
    """The proposal to add a follower, if it has what a member needs and no change is in flight."""
    if (
        isr.in_flight
        or follower.broker_id in isr.committed
        or not is_follower_in_sync(follower.log_end_offset, high_watermark, epoch_start_offset)
    ):
        return None
    return Proposal(
        isr.expanding(follower.broker_id),
        f"broker {follower.broker_id} has caught up to offset {follower.log_end_offset}"
        f" (high watermark {high_watermark}, the leader's epoch began at {epoch_start_offset})",
    )


def shrinking(isr: InSyncReplicas, late: Mapping[int, str], may_shrink: bool) -> Proposal | None:
    """The proposal to remove members, each with the reason (`in_sync.out_of_sync_replicas` finds
    them), if the durability policy allows so small an ISR."""
    if not late or not may_shrink:
        return None
    return Proposal(isr.shrinking(late), "; ".join(late.values()))


class AlterPartitionOutcome(Enum):
    """The consequence of an answer for the proposed ISR."""

    COMMITTED = auto()
    ROLL_BACK = auto()  # refused for a temporary reason: back to the committed ISR
    AWAIT_LEADER_AND_ISR = auto()  # this leader is behind: a LeaderAndIsr is in flight
    RETRY = auto()


_OUTCOMES = {
    ErrorCode.NONE: AlterPartitionOutcome.COMMITTED,
    ErrorCode.OPERATION_NOT_ATTEMPTED: AlterPartitionOutcome.ROLL_BACK,
    ErrorCode.INELIGIBLE_REPLICA: AlterPartitionOutcome.ROLL_BACK,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: AlterPartitionOutcome.AWAIT_LEADER_AND_ISR,
    ErrorCode.UNKNOWN_TOPIC_ID: AlterPartitionOutcome.AWAIT_LEADER_AND_ISR,
    ErrorCode.FENCED_LEADER_EPOCH: AlterPartitionOutcome.AWAIT_LEADER_AND_ISR,
    ErrorCode.INVALID_UPDATE_VERSION: AlterPartitionOutcome.AWAIT_LEADER_AND_ISR,
    ErrorCode.INVALID_REQUEST: AlterPartitionOutcome.AWAIT_LEADER_AND_ISR,
}


def outcome_of(error_code: int) -> AlterPartitionOutcome:
    """The consequence of a partition's error code in an AlterPartition response."""
    return _OUTCOMES.get(ErrorCode(error_code), AlterPartitionOutcome.RETRY)


def after_answer(
    isr: InSyncReplicas, leader_epoch: int, partition_epoch: int, answer: AlteredPartition
) -> tuple[InSyncReplicas, int]:
    """The ISR and the partition epoch after the controller's answer to the proposal in `isr`.

    Both stay as they are if the answer is late, or if it shows that this leader is behind the
    controller: the proposal then counts until the next LeaderAndIsr.
    """
    match outcome_of(answer.error_code):
        case AlterPartitionOutcome.ROLL_BACK:
            return isr.rolled_back(), partition_epoch
        case AlterPartitionOutcome.COMMITTED if (
            answer.leader_epoch == leader_epoch and answer.partition_epoch >= partition_epoch
        ):
            return InSyncReplicas(tuple(answer.in_sync_replicas)), answer.partition_epoch
    return isr, partition_epoch

"""Which ISR a leader proposes, and what the controller's answer changes."""

import pytest
from barnabas_broker.replica.leader.in_sync import InSyncReplicas, RemoteReplica
from barnabas_broker.replica.leader.isr_changes import after_answer, expansion
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import AlteredPartition

COMMITTED = InSyncReplicas((1, 2))


@pytest.mark.parametrize(
    ("isr", "broker_id", "log_end_offset", "proposed"),
    [
        (COMMITTED, 3, 100, (1, 2, 3)),
        (COMMITTED, 3, 99, None),  # a committed record is missing
        (COMMITTED, 2, 100, None),  # it is a member
        (COMMITTED.shrinking([2]), 3, 100, None),  # another change is in flight
    ],
)
def test_a_follower_is_proposed_once_it_may_join(
    isr: InSyncReplicas, broker_id: int, log_end_offset: int, proposed: tuple[int, ...] | None
) -> None:
    proposal = expansion(isr, RemoteReplica(broker_id, log_end_offset), 100, 90)
    assert (proposal.isr.proposed if proposal is not None else None) == proposed
    if proposal is not None:
        assert "broker 3 has caught up to offset 100" in proposal.cause


def answer(
    error: ErrorCode = ErrorCode.NONE, leader_epoch: int = 5, partition_epoch: int = 8
) -> AlteredPartition:
    return AlteredPartition(
        "t",
        0,
        error,
        leader_id=1,
        leader_epoch=leader_epoch,
        in_sync_replicas=[1, 2, 3],
        partition_epoch=partition_epoch,
    )


@pytest.mark.parametrize(
    ("given", "isr", "partition_epoch"),
    [
        (answer(), InSyncReplicas((1, 2, 3)), 8),
        (answer(partition_epoch=7), InSyncReplicas((1, 2, 3)), 7),
        (answer(partition_epoch=6), COMMITTED.expanding(3), 7),  # older than the known state
        (answer(leader_epoch=4), COMMITTED.expanding(3), 7),  # of an earlier leader
        (answer(ErrorCode.INELIGIBLE_REPLICA), COMMITTED, 7),
        (answer(ErrorCode.FENCED_LEADER_EPOCH), COMMITTED.expanding(3), 7),
    ],
)
def test_an_answer_commits_rolls_back_or_leaves_the_proposal(
    given: AlteredPartition, isr: InSyncReplicas, partition_epoch: int
) -> None:
    assert after_answer(COMMITTED.expanding(3), 5, 7, given) == (isr, partition_epoch)

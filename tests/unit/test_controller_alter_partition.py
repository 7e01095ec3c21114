"""AlterPartition: the order of the checks, and the answers to leaders."""

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import AlterPartitionItem
from barnabas_controller.partitions.alter_partition import (
    AlreadyDone,
    Reject,
    Write,
    decide_alter_partition,
)
from barnabas_controller.store.leader_and_isr import RECOVERED, RECOVERING, LeaderAndIsr

CURRENT = LeaderAndIsr(1, leader_epoch=7, isr=(1, 2), controller_epoch=3, partition_epoch=5)
RECOVERING_NOW = LeaderAndIsr(1, 7, (1,), 3, 5, RECOVERING)
LIVE = (1, 2, 3)


def ask(
    isr: list[int], leader_epoch: int = 7, partition_epoch: int = 5, recovery: int = RECOVERED
) -> AlterPartitionItem:
    return AlterPartitionItem("flights", 0, leader_epoch, partition_epoch, isr, recovery)


def test_a_legal_change_is_written_on_top_of_the_known_partition_epoch() -> None:
    decision = decide_alter_partition(ask([1, 2, 3]), CURRENT, LIVE, 1)
    assert isinstance(decision, Write)
    assert decision.state == LeaderAndIsr(1, 7, (1, 2, 3), 3, 5), "the leader epoch stays"


def test_a_retry_of_a_change_that_was_made_succeeds_with_the_present_state() -> None:
    decision = decide_alter_partition(ask([1, 2], partition_epoch=4), CURRENT, LIVE, 1)
    assert decision == AlreadyDone(CURRENT)


def test_a_partition_without_leadership_is_unknown() -> None:
    decision = decide_alter_partition(ask([1]), None, LIVE, 1)
    assert isinstance(decision, Reject) and decision.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


CASES = [
    # the request, the state, the code
    (ask([1], partition_epoch=6), CURRENT, ErrorCode.NOT_CONTROLLER),
    (ask([1], leader_epoch=8), CURRENT, ErrorCode.NOT_CONTROLLER),
    (ask([1], leader_epoch=6), CURRENT, ErrorCode.FENCED_LEADER_EPOCH),
    (ask([1], partition_epoch=4), CURRENT, ErrorCode.INVALID_UPDATE_VERSION),
    (ask([], 7, 5), CURRENT, ErrorCode.INVALID_REQUEST),
    (ask([1, 1]), CURRENT, ErrorCode.INVALID_REQUEST),
    (ask([1, 2], recovery=RECOVERING), RECOVERING_NOW, ErrorCode.INVALID_REQUEST),
    (ask([1], recovery=RECOVERING), CURRENT, ErrorCode.INVALID_REQUEST),
    (ask([1], recovery=5), CURRENT, ErrorCode.INVALID_REQUEST),
    (ask([1, 2, 4]), CURRENT, ErrorCode.INELIGIBLE_REPLICA),
    # order: each of these breaks two rules
    (ask([1], leader_epoch=8, partition_epoch=4), CURRENT, ErrorCode.NOT_CONTROLLER),
    # not in Kafka: its state znode may have been deleted and created again
    (ask([1], leader_epoch=6, partition_epoch=6), CURRENT, ErrorCode.FENCED_LEADER_EPOCH),
    (ask([1], leader_epoch=6, partition_epoch=4), CURRENT, ErrorCode.FENCED_LEADER_EPOCH),
    (ask([1, 2], leader_epoch=6), CURRENT, ErrorCode.FENCED_LEADER_EPOCH),
    (ask([1, 4], partition_epoch=4), CURRENT, ErrorCode.INVALID_UPDATE_VERSION),
    (ask([1, 4], recovery=RECOVERING), CURRENT, ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("item", "current", "code"), CASES)
def test_the_checks_come_in_kafkas_order(
    item: AlterPartitionItem, current: LeaderAndIsr, code: ErrorCode
) -> None:
    decision = decide_alter_partition(item, current, LIVE, 1)
    assert isinstance(decision, Reject)
    assert decision.code == code


def test_a_leader_that_recovered_says_so_with_its_next_change() -> None:
    decision = decide_alter_partition(ask([1, 2]), RECOVERING_NOW, LIVE, 1)
    assert isinstance(decision, Write)
    assert decision.state.recovery_state == RECOVERED


@pytest.mark.parametrize(
    ("epochs", "refused"),
    [([-1, 20, 30], False), ([-1, 20, 29], True), ([], False), ([-1, -1, -1], False)],
)
def test_the_leader_must_go_by_fetches_of_the_present_life(
    epochs: list[int], refused: bool
) -> None:
    item = ask([1, 2, 3])
    item.new_isr_epochs = epochs
    decision = decide_alter_partition(item, CURRENT, LIVE, 1, {1: 10, 2: 20, 3: 30})
    assert isinstance(decision, Reject if refused else Write)
    if isinstance(decision, Reject):
        assert decision.code == ErrorCode.INELIGIBLE_REPLICA and "3" in decision.reason

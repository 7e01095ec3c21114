"""Reassignment as data: the assignment during it, legal requests, and when it is complete."""

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_controller.reassignment.reassignment_rules import (
    Rejected,
    is_complete,
    judge,
    original_of,
    reassigned,
    removed_replicas,
    target_of,
)
from barnabas_controller.reassignment.reassignment_znode import (
    decode_reassignments,
    encode_reassignments,
)
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import MalformedZnode, ReplicaAssignment, decode_topic

HOME = ReplicaAssignment((1, 2, 3))
MOVING = ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))


@pytest.mark.parametrize(
    ("current", "target", "expected"),
    [
        (HOME, [4, 5, 6], MOVING),
        (HOME, [3, 4], ReplicaAssignment((3, 4, 1, 2), (4,), (1, 2))),
        (HOME, [1, 2], ReplicaAssignment((1, 2, 3), (), (3,))),
        (HOME, [1, 2, 3, 4], ReplicaAssignment((1, 2, 3, 4), (4,), ())),
        (HOME, [3, 2, 1], ReplicaAssignment((3, 2, 1))),
        (HOME, [1, 2, 3], HOME),
        # Redirected: the original is the first assignment, not the earlier target.
        (MOVING, [6, 7], ReplicaAssignment((6, 7, 1, 2, 3), (6, 7), (1, 2, 3))),
        (MOVING, [1, 2, 3], HOME),
    ],
)
def test_the_assignment_on_the_way_holds_both_ends(
    current: ReplicaAssignment, target: list[int], expected: ReplicaAssignment
) -> None:
    assignment = reassigned(current, target)
    assert assignment == expected
    assert target_of(assignment) == tuple(target)
    assert set(original_of(assignment)) == set(original_of(current))


@pytest.mark.parametrize(
    ("current", "target", "live", "outcome"),
    [
        (HOME, [4, 5, 6], [1, 4, 5, 6], MOVING),
        (HOME, [4, 5, 6], [1, 2, 3, 4, 5], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (HOME, [9], [1, 2, 3], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (HOME, [], [1, 2, 3], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (HOME, [1, 1], [1, 2, 3], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (HOME, [-1, 1], [1, 2, 3], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        # Brokers that stay need not be alive.
        (HOME, [1, 2], [3], ReplicaAssignment((1, 2, 3), (), (3,))),
        (HOME, None, [1, 2, 3], ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (MOVING, None, [], HOME),
        (ReplicaAssignment(()), [1], [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ReplicaAssignment(()), None, [1], ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_what_may_be_asked(
    current: ReplicaAssignment,
    target: list[int] | None,
    live: list[int],
    outcome: ReplicaAssignment | ErrorCode,
) -> None:
    ruling = judge(current, target, live)
    assert (ruling.code if isinstance(ruling, Rejected) else ruling) == outcome


@pytest.mark.parametrize(
    ("isr", "online", "complete"),
    [
        ((1, 2, 3), (1, 2, 3, 4, 5, 6), False),
        ((1, 4, 5), (1, 4, 5, 6), False),
        ((1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6), True),
        ((4, 5, 6), (6,), True),
        ((4, 5, 6), (1, 2, 3), False),
    ],
)
def test_it_is_done_when_the_whole_target_is_in_sync_and_one_of_it_can_lead(
    isr: tuple[int, ...], online: tuple[int, ...], complete: bool
) -> None:
    state = LeaderAndIsr(isr[0], 1, isr, 1)
    assert is_complete(MOVING, state, online) is complete
    assert is_complete(MOVING, None, online) is False
    assert is_complete(HOME, state, online) is True
    assert MOVING.is_being_reassigned and not HOME.is_being_reassigned


def test_who_leaves() -> None:
    assert removed_replicas(MOVING, HOME) == (4, 5, 6)
    assert removed_replicas(HOME, MOVING) == ()


def test_the_old_znode_is_read_and_written_as_kafkas_tools_do() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}'
    targets = decode_reassignments(data)
    assert targets == {("t", 0): (4, 5, 6)}
    assert encode_reassignments(targets) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no json",
        b"[]",
        b'{"partitions":3}',
        b'{"partitions":[3]}',
        b'{"partitions":[{"topic":"t","replicas":[1]}]}',
        b'{"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}',
        b'{"partitions":[{"topic":"t","partition":0,"replicas":[1]},'
        b'{"topic":"t","partition":0,"replicas":[2]}]}',
    ],
)
def test_nonsense_in_the_old_znode_is_named(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="/admin/reassign_partitions"):
        decode_reassignments(data)


@pytest.mark.parametrize(
    "moving",
    [
        b'"adding_replicas":{"0":[9]},"removing_replicas":{}',
        b'"adding_replicas":{},"removing_replicas":{"0":[9]}',
        b'"adding_replicas":{},"removing_replicas":{"0":[1,2]}',
        b'"adding_replicas":{"0":[1]},"removing_replicas":{"0":[1]}',
    ],
)
def test_a_topic_that_adds_or_removes_what_it_cannot_is_malformed(moving: bytes) -> None:
    with pytest.raises(MalformedZnode, match="partition 0"):
        decode_topic("t", b'{"version":3,"partitions":{"0":[1,2]},' + moving + b"}")

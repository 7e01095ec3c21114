"""Rules of `docs/rules-groups.md` that no other test stands for, over a clock moved by hand."""

from barnabas_broker.coordinator.group.states import GroupState, may_follow
from barnabas_common.errors.error_code import ErrorCode

from tests.support.group_world import DELAY_MS, REBALANCE_MS, GroupWorld

MORE = {"range": b"more"}

# As in Kafka's `GroupState`, without those to Dead, which every state may become.
CHANGES = {
    ("Empty", "PreparingRebalance"),
    ("Stable", "PreparingRebalance"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("CompletingRebalance", "Stable"),
    ("PreparingRebalance", "Empty"),
}


def test_the_changes_of_state_are_kafkas() -> None:
    found = {
        (before.value, after.value)
        for before in GroupState
        for after in GroupState
        if may_follow(after, before)
    }
    assert found == CHANGES | {(state.value, "Dead") for state in GroupState}


def test_of_two_joins_of_one_member_the_earlier_gets_no_other_answer() -> None:
    world = GroupWorld()
    first, _ = world.stable(2)
    earlier = world.join_once(first, metadata=MORE)
    later = world.join_once(first, metadata=MORE)
    assert earlier.join.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not later.joins, "parked"


def test_of_two_syncs_of_one_member_the_earlier_gets_no_other_answer() -> None:
    world = GroupWorld()
    (leader, _), (other, _) = world.join_new(), world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    earlier, later = world.sync(other), world.sync(other)
    assert earlier.sync.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(leader, {other: b"part"})
    assert later.sync.assignment == b"part"


def test_a_protocol_that_one_member_lacks_is_not_selected() -> None:
    world = GroupWorld()
    joined = [
        world.join_new({"new": b"", "old": b""})[1],
        world.join_new({"new": b"", "old": b""})[1],
        world.join_new({"old": b""})[1],
    ]
    world.advance(3 * DELAY_MS / 1000)
    assert {answers.join.protocol_name for answers in joined} == {"old"}


def test_a_rebalance_waits_as_long_as_its_slowest_member_may_need() -> None:
    world = GroupWorld()
    fast, slow = world.stable(2)
    world.group.members[slow].rebalance_timeout_ms = 2 * REBALANCE_MS
    parked = world.join_once(fast, metadata=MORE)
    for _ in range(2 * REBALANCE_MS // 1000 - 1):
        world.advance(1.0)
        assert world.heartbeat(slow) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not parked.joins
    world.advance(1.0)
    assert [item.member_id for item in parked.join.members] == [fast]


def test_an_assignment_is_not_asked_for_during_a_rebalance() -> None:
    world = GroupWorld()
    first, second = world.stable(2)
    world.join_once(first, metadata=MORE)
    assert world.sync(second).sync.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_are_in_order_while_the_leader_assigns() -> None:
    world = GroupWorld()
    member, _ = world.join_new()
    world.advance(DELAY_MS / 1000)
    assert world.group.state is GroupState.COMPLETING_REBALANCE
    assert world.heartbeat(member) is ErrorCode.NONE


def test_a_member_that_leaves_makes_the_others_rebalance() -> None:
    world = GroupWorld()
    first, second = world.stable(2)
    assert world.leave(second) is ErrorCode.NONE
    assert world.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID

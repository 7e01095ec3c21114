"""Joining, heartbeats, leaving and rebalances, over a clock that is moved by hand."""

import pytest
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind

from tests.support.group_world import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, GroupWorld
from tests.support.raw_groups import subscription

STATIC = "instance-1"


def test_a_new_member_is_given_an_id_and_joins_with_it() -> None:
    world = GroupWorld()
    refused = world.join_once().join
    assert (refused.error_code, refused.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "c-id1")
    assert world.group.state is GroupState.EMPTY and not world.group.members
    assert not world.join_once("c-id1").joins, "parked"
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_an_id_that_is_not_used_within_the_session_timeout_is_forgotten() -> None:
    world = GroupWorld()
    world.join_once()
    world.advance(SESSION_MS / 1000 + 1)
    assert not world.group.pending_members
    assert world.join_once("c-id1").join.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_ids_that_were_given_out() -> None:
    world = GroupWorld()
    (member,) = world.stable(1)
    world.join_once()
    again = world.join_once(member)
    assert not again.joins, "the new member is expected"
    assert world.leave("c-id2") is ErrorCode.NONE
    assert again.join.generation_id == 2


def test_the_first_member_waits_for_the_initial_delay() -> None:
    world = GroupWorld()
    _, answers = world.join_new()
    world.advance(DELAY_MS / 1000 - 0.1)
    assert not answers.joins
    world.advance(0.2)
    assert answers.join.generation_id == 1
    assert answers.join.leader == answers.join.member_id


def test_members_that_arrive_extend_the_initial_delay_up_to_the_rebalance_timeout() -> None:
    world = GroupWorld()
    _, first = world.join_new()
    for _ in range(30):
        world.advance(1.0)
        if not first.joins:
            world.join_new()
    assert first.joins
    assert REBALANCE_MS / 1000 - 1 <= len(first.join.members) <= REBALANCE_MS / 1000 + 1


def test_only_the_leader_learns_who_is_there_and_what_they_support() -> None:
    world = GroupWorld()
    (leader, first), (_, second) = world.join_new({"range": b"1"}), world.join_new({"range": b"2"})
    world.advance(2 * DELAY_MS / 1000)
    assert first.join.leader == second.join.leader == leader
    assert [item.metadata for item in first.join.members] == [b"1", b"2"]
    assert not second.join.members


def test_the_protocol_is_the_one_that_most_prefer_of_those_all_support() -> None:
    world = GroupWorld()
    joined = [
        world.join_new({"new": b"", "a": b"", "b": b""})[1],
        world.join_new({"b": b"", "a": b""})[1],
        world.join_new({"b": b"", "a": b""})[1],
    ]
    world.advance(3 * DELAY_MS / 1000)
    assert {answers.join.protocol_name for answers in joined} == {"b"}


def test_an_assignment_is_given_out_once_it_is_written() -> None:
    world = GroupWorld()
    world.hold_writes = True
    (leader, _), (other, _) = world.join_new(), world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    waiting = [world.sync(other), world.sync(leader, {other: b"part"})]
    assert not waiting[0].syncs and not waiting[1].syncs
    world.finish_writes()
    assert waiting[0].sync.assignment == b"part"
    assert waiting[1].sync.assignment == b"", "left out by the leader"
    assert world.group.state is GroupState.STABLE
    assert world.sync(other).sync.assignment == b"part", "asked again"


def test_an_assignment_that_cannot_be_written_starts_a_rebalance() -> None:
    world = GroupWorld()
    world.store_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    leader, _ = world.join_new()
    world.advance(DELAY_MS / 1000)
    assert world.sync(leader, {leader: b""}).sync.error_code == world.store_error
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_a_write_that_a_later_generation_has_overtaken_changes_nothing() -> None:
    world = GroupWorld()
    world.hold_writes = True
    leader, _ = world.join_new()
    world.advance(DELAY_MS / 1000)
    late = world.sync(leader, {leader: b"old"})
    world.join_once(leader, metadata={"range": b"changed"})
    assert late.sync.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.finish_writes()
    assert world.group.state is GroupState.COMPLETING_REBALANCE
    assert world.group.members[leader].assignment == b""


def test_a_member_that_the_leader_leaves_out_has_no_partitions_any_more() -> None:
    """Those that it had may be another member's now."""
    world = GroupWorld()
    (leader, _), (other, _) = world.join_new(), world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    world.sync(leader, {leader: b"0", other: b"1"})
    assert world.sync(other).sync.assignment == b"1"
    world.join_once(leader)
    world.join_once(other)
    world.sync(leader, {leader: b"0, 1"})
    assert world.sync(other).sync.assignment == b""
    assert world.stored[-1] == {leader: b"0, 1", other: b""}


def test_members_that_do_not_ask_for_their_assignment_are_removed() -> None:
    world = GroupWorld()
    (leader, _), (silent, _) = world.join_new(), world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    world.sync(leader, {leader: b"", silent: b""})
    for _ in range(REBALANCE_MS // 1000 + 1):
        world.heartbeat(leader)
        world.heartbeat(silent)
        world.advance(1.0)
    assert list(world.group.members) == [leader]
    assert world.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_heartbeat_expires_and_the_others_rebalance() -> None:
    world = GroupWorld()
    first, second = world.stable(2)
    for _ in range(SESSION_MS // 1000 + 1):
        world.heartbeat(first)
        world.advance(1.0)
    assert list(world.group.members) == [first]
    assert world.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join_once(first).join.generation_id == 2
    assert EventKind.GROUP_MEMBER_EXPIRED in world.kinds()
    assert world.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID


def test_parked_members_do_not_expire() -> None:
    world = GroupWorld()
    first, second = world.stable(2)
    parked = world.join_once(first)
    for _ in range(REBALANCE_MS // 1000 - 1):
        world.heartbeat(second)
        world.advance(1.0)
    assert not parked.joins and first in world.group.members
    world.advance(2.0)
    assert parked.join.generation_id == 2
    assert list(world.group.members) == [first], "the other did not join in time"
    world.sync(first, {first: b""})
    world.advance(SESSION_MS / 1000)
    assert not world.group.members, "once it is answered its session goes on"


def test_a_new_member_that_waits_too_long_is_given_up() -> None:
    world = GroupWorld()
    (first,) = world.stable(1)
    world.group.members[first].rebalance_timeout_ms = 1_000_000
    _, waiting = world.join_new()
    for _ in range(301):
        world.heartbeat(first)
        world.advance(1.0)
    assert waiting.join.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(world.group.members) == [first]
    expired = [e for e in world.events.since(0) if e.kind is EventKind.GROUP_MEMBER_EXPIRED]
    assert [e.cause for e in expired] == ["a new member, it waited for the others for 300000 ms"]


def test_the_leader_that_joins_again_starts_a_rebalance_and_a_follower_does_not() -> None:
    world = GroupWorld()
    leader, follower = world.stable(2)
    assert world.join_once(follower).join.generation_id == 1
    assert world.group.state is GroupState.STABLE
    assert not world.join_once(leader).joins
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_a_follower_with_other_metadata_starts_a_rebalance() -> None:
    world = GroupWorld()
    _, follower = world.stable(2)
    world.join_once(follower, metadata={"range": b"more"})
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_a_lost_answer_is_given_again_while_the_group_waits_for_its_leader() -> None:
    world = GroupWorld()
    (leader, _), (follower, _) = world.join_new(), world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    assert len(world.join_once(leader).join.members) == 2
    assert not world.join_once(follower).join.members
    assert world.group.state is GroupState.COMPLETING_REBALANCE


def test_heartbeats_name_what_is_wrong() -> None:
    world = GroupWorld()
    (member,) = world.stable(1)
    assert world.heartbeat(member) is ErrorCode.NONE
    assert world.heartbeat("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(member, generation=7) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(member, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert world.leave(member) is ErrorCode.NONE
    assert world.heartbeat(member) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_member_that_leaves_empties_the_group_and_that_is_written() -> None:
    world = GroupWorld()
    (member,) = world.stable(1)
    assert world.leave(member) is ErrorCode.NONE
    assert (world.group.state, world.group.generation_id) == (GroupState.EMPTY, 2)
    assert world.stored[-1] == {} and world.group.protocol_type == "consumer"
    assert world.leave(member) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("protocol_type", "topics"), [("consumer", {"orders"}), ("connect", None)])
def test_only_consumers_have_subscriptions(protocol_type, topics) -> None:
    """The metadata of other groups is their own, even if its bytes could be a subscription."""
    world = GroupWorld()
    joining = {"metadata": {"range": subscription("orders")}, "protocol_type": protocol_type}
    given = world.join_once(**joining).join.member_id
    world.join_once(given, **joining)
    world.advance(DELAY_MS / 1000)
    assert world.group.subscribed_topics == topics


def test_another_member_leads_when_the_leader_leaves() -> None:
    world = GroupWorld()
    leader, other = world.stable(2)
    world.leave(leader)
    joined = world.join_once(other).join
    assert (joined.leader, joined.generation_id) == (other, 2)


@pytest.mark.parametrize(
    ("metadata", "protocol_type"),
    [({"other": b""}, "consumer"), (RANGE, "connect"), ({}, "consumer")],
)
def test_members_without_a_common_protocol_are_refused(metadata, protocol_type) -> None:
    world = GroupWorld()
    world.stable(1)
    answer = world.join_once(metadata=metadata, protocol_type=protocol_type).join
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.group.state is GroupState.STABLE


@pytest.mark.parametrize(("metadata", "protocol_type"), [({}, "consumer"), (RANGE, "")])
def test_an_empty_group_wants_a_type_and_a_protocol(metadata, protocol_type) -> None:
    answer = GroupWorld().join_once(metadata=metadata, protocol_type=protocol_type).join
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_refuses_new_members_and_keeps_its_own() -> None:
    world = GroupWorld(max_size=2)
    first, second = world.stable(2)
    assert world.join_once().join.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    waiting = [world.join_once(first, metadata={"range": b"n"}), world.join_once(second)]
    assert {answers.join.generation_id for answers in waiting} == {2}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"generation_id": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_name": "roundrobin"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_that_does_not_fit_is_refused(changes, error) -> None:
    world = GroupWorld()
    (member,) = world.stable(1)
    assert world.sync(member, **changes).sync.error_code == error
    assert world.group.state is GroupState.STABLE


# ---- static members


def stable_static(world: GroupWorld) -> tuple[str, str]:
    """A static member that leads, and a dynamic one."""
    static = world.join_once(instance_id=STATIC)
    dynamic, _ = world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    world.assign()
    return static.join.member_id, dynamic


def test_a_static_member_needs_no_id_first_and_returns_without_a_rebalance() -> None:
    world = GroupWorld()
    old, dynamic = stable_static(world)
    assert old == f"{STATIC}-id1"
    answer = world.join_once(instance_id=STATIC).join
    new = answer.member_id
    assert (answer.generation_id, answer.leader, answer.skip_assignment) == (1, new, True)
    assert {item.member_id for item in answer.members} == {new, dynamic}
    assert world.group.state is GroupState.STABLE
    assert world.stored[-1] == {new: old.encode(), dynamic: dynamic.encode()}
    assert world.heartbeat(old, STATIC) is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(new, STATIC) is ErrorCode.NONE
    assert world.sync(new, group_instance_id=STATIC).sync.assignment == old.encode()


def test_a_static_member_that_returns_must_ask_for_its_assignment_too() -> None:
    world = GroupWorld()
    (leader, _), static = world.join_new(), world.join_once(instance_id=STATIC)
    world.advance(2 * DELAY_MS / 1000)
    world.sync(leader, {leader: b"", static.join.member_id: b""})
    again = world.join_once(instance_id=STATIC).join.member_id
    for _ in range(REBALANCE_MS // 1000 + 1):
        world.heartbeat(leader)
        world.heartbeat(again, STATIC)
        world.advance(1.0)
    assert list(world.group.members) == [leader]


def test_a_static_member_whose_new_id_cannot_be_written_keeps_the_old_one() -> None:
    world = GroupWorld()
    old, _ = stable_static(world)
    world.store_error = ErrorCode.NOT_COORDINATOR
    metadata = {"range": b"changed", "other": b""}
    returned = world.join_once("", STATIC, metadata, session_ms=60_000, rebalance_ms=60_000)
    assert returned.join.error_code == ErrorCode.NOT_COORDINATOR
    kept = world.group.members[old]
    assert kept.protocols == tuple(RANGE.items())
    assert (kept.session_timeout_ms, kept.rebalance_timeout_ms) == (SESSION_MS, REBALANCE_MS)
    assert world.heartbeat(old, STATIC) is ErrorCode.NONE
    assert world.group.static_members == {STATIC: old}


def test_a_static_member_that_returns_twice_while_its_id_is_written_gets_the_second_id() -> None:
    """The answer to its first request was lost."""
    world = GroupWorld()
    stable_static(world)
    world.hold_writes = True
    first = world.join_once(instance_id=STATIC)
    again = world.join_once(instance_id=STATIC)
    world.finish_writes()
    assert first.join.error_code == ErrorCode.FENCED_INSTANCE_ID
    member_id = again.join.member_id
    assert again.join.error_code == ErrorCode.NONE
    assert world.sync(member_id, group_instance_id=STATIC).sync.error_code == ErrorCode.NONE
    assert world.heartbeat(member_id, STATIC) is ErrorCode.NONE


@pytest.mark.parametrize("outcome", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_an_id_whose_write_ends_in_a_later_generation_stays(outcome: ErrorCode) -> None:
    """The next generation writes it once more."""
    world = GroupWorld()
    _, other = stable_static(world)
    world.hold_writes = True
    returned = world.join_once(instance_id=STATIC)
    world.join_once(other, metadata={"range": b"changed"})
    static = returned.join.member_id
    assert (returned.join.error_code, returned.join.generation_id) == (ErrorCode.NONE, 2)
    leader = next(one for one in (static, other) if world.group.is_leader(one))
    synced = world.sync(static, {static: b"1"} if static == leader else None)
    world.sync(other, {static: b"1"} if other == leader else None)
    world.finish_first_write(outcome)
    world.finish_writes()
    assert synced.sync.error_code == ErrorCode.NONE
    assert world.heartbeat(static, STATIC) is ErrorCode.NONE


def test_a_static_member_that_returns_with_another_preference_rebalances() -> None:
    world = GroupWorld()
    world.join_once(instance_id=STATIC, metadata={"a": b"", "b": b""})
    world.advance(DELAY_MS / 1000)
    world.assign()
    answer = world.join_once(instance_id=STATIC, metadata={"b": b"", "a": b""}).join
    assert (answer.generation_id, answer.protocol_name) == (2, "b")


def test_a_parked_request_of_a_replaced_member_is_fenced() -> None:
    world = GroupWorld()
    old, _ = stable_static(world)
    parked = world.join_once(old, STATIC)
    assert not parked.joins
    world.join_once(instance_id=STATIC)
    assert parked.join.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert world.join_once(old, STATIC).join.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_stays_in_a_rebalance_it_misses_until_its_session_ends() -> None:
    world = GroupWorld()
    static, dynamic = stable_static(world)
    world.group.members[static].session_timeout_ms = 60_000
    world.heartbeat(static, STATIC)
    again = world.join_once(dynamic, metadata={"range": b"n"})
    world.advance(REBALANCE_MS / 1000)
    assert again.join.leader == dynamic, "a leader that did not come is replaced"
    assert {item.member_id for item in again.join.members} == {static, dynamic}


def test_a_static_member_can_be_removed_by_its_instance_id_alone() -> None:
    world = GroupWorld()
    static, dynamic = stable_static(world)
    assert world.leave("", "stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("other-id", STATIC) is ErrorCode.FENCED_INSTANCE_ID
    assert world.leave("", STATIC) is ErrorCode.NONE
    assert list(world.group.members) == [dynamic] and static not in world.group.members


def test_a_group_that_moves_away_answers_all_that_wait() -> None:
    world = GroupWorld()
    (leader, _), (other, _) = world.join_new(), world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    waiting = world.sync(other)
    joining = world.join_once(leader, metadata={"range": b"n"})
    world.rebalances.forget(world.group, ErrorCode.NOT_COORDINATOR)
    assert waiting.sync.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert joining.join.error_code == ErrorCode.NOT_COORDINATOR
    world.group.state = GroupState.DEAD
    world.advance(1000)
    assert EventKind.GROUP_MEMBER_EXPIRED not in world.kinds()

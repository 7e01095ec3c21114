"""Whom a rebalance waits for, and for how long, as an administrator and the members are told."""

import pytest
from barnabas.group.awaiting import Awaiting, in_words
from barnabas_broker.coordinator.group.membership.awaited import Awaited, awaited
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_common.messages.groups import AwaitedMember

from tests.support.group_world import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, GroupWorld


def waits(world: GroupWorld) -> Awaited:
    return awaited(world.group, world.rebalances, world.now)


def ids(world: GroupWorld) -> list[str]:
    return [member.member_id for member in waits(world).members]


def test_a_stable_group_waits_for_no_member() -> None:
    world = GroupWorld()
    assert waits(world) == Awaited([], -1), "an empty one neither"
    world.stable(2)
    assert waits(world) == Awaited([], -1)


def test_in_its_initial_delay_a_group_waits_for_more_members() -> None:
    world = GroupWorld()
    world.join_new()
    world.advance(1.0)
    assert waits(world) == Awaited([], DELAY_MS - 1000)


def test_a_rebalance_waits_for_the_members_that_have_not_joined_again() -> None:
    world = GroupWorld()
    first, second = world.stable(2)
    world.join_once(first)
    world.advance(3.0)
    (late,) = waits(world).members
    assert (late.member_id, late.client_id, late.client_host) == (second, "c", "/host")
    assert late.session_left_ms == SESSION_MS - 3000
    assert waits(world).left_ms == REBALANCE_MS - 3000
    world.heartbeat(second)
    assert waits(world).members[0].session_left_ms == SESSION_MS
    world.join_once(second)
    assert world.group.state is GroupState.COMPLETING_REBALANCE


def test_it_waits_for_an_id_that_was_given_out_and_names_its_client() -> None:
    world = GroupWorld()
    (first,) = world.stable(1)
    given = world.join_once().join.member_id
    world.join_once(first)
    (late,) = waits(world).members
    assert (late.member_id, late.client_id, late.client_host) == (given, "c", "/host")
    assert late.session_left_ms == SESSION_MS
    world.leave(given)
    assert ids(world) == [first] and world.group.state is GroupState.COMPLETING_REBALANCE


def test_an_assignment_waits_for_the_members_that_have_not_asked_for_it() -> None:
    world = GroupWorld()
    (leader, _), (other, _) = world.join_new(), world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    assert ids(world) == [leader, other]
    world.sync(other)
    assert ids(world) == [leader] and waits(world).left_ms > 0
    world.sync(leader, {other: b""})
    assert waits(world) == Awaited([], -1)


def test_a_static_member_is_named_with_its_instance() -> None:
    world = GroupWorld()
    static = world.join_once(instance_id="till-1")
    dynamic, _ = world.join_new()
    world.advance(2 * DELAY_MS / 1000)
    world.assign()
    world.join_once(dynamic, metadata={**RANGE, "more": b""})
    (late,) = waits(world).members
    assert (late.member_id, late.group_instance_id) == (static.join.member_id, "till-1")


# ---- in words

LATE = AwaitedMember("b-1", "till-1", "b", "/10.0.0.7", 4_400)


@pytest.mark.parametrize(
    ("awaiting", "expected"),
    [
        (Awaiting("Stable"), []),
        (
            Awaiting("PreparingRebalance", [LATE], 12.0),
            [
                "waits at most 12 s more for b-1 (client b, host /10.0.0.7, instance till-1) to"
                " join; it is removed in 4 s unless it sends a heartbeat"
            ],
        ),
        (
            Awaiting("CompletingRebalance", [AwaitedMember("a-1")], 2.0),
            [
                "waits at most 2 s more for a-1 (client -, host -) to ask for its assignment;"
                " it is removed in 0 s unless it sends a heartbeat"
            ],
        ),
        (
            Awaiting("PreparingRebalance", [], 3.0),
            ["waits at most 3 s more for other members to join (group.initial.rebalance.delay.ms)"],
        ),
    ],
)
def test_the_words(awaiting: Awaiting, expected: list[str]) -> None:
    assert list(in_words(awaiting)) == expected


def test_an_answer_ages() -> None:
    aged = Awaiting("PreparingRebalance", [LATE], 12.0).later(5.0)
    assert (aged.seconds, aged.members[0].session_left_ms) == (7.0, 0)
    assert Awaiting("Stable").later(5.0) == Awaiting("Stable")

"""The tables of a group's member, and what a leader sees of a group."""

import pytest
from barnabas.cluster import ClusterMetadata
from barnabas.cluster.metadata import TopicInfo
from barnabas.group.assignors import Subscription
from barnabas.group.leader import changed, partitions_of, read_subscriptions
from barnabas.group.protocol import encode_subscription
from barnabas.group.states import (
    COMMIT,
    HEARTBEAT,
    JOIN,
    PLAIN,
    PREVIOUS,
    SYNC,
    MemberState,
    Reaction,
    reaction,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import JoinGroupMember
from barnabas_common.messages.metadata import BrokerInfo, PartitionMetadata


def test_every_state_is_reached_and_left() -> None:
    reached = {MemberState.UNJOINED}
    for _ in MemberState:
        reached |= {state for state, before in PREVIOUS.items() if before & reached}
    assert reached == set(MemberState)
    for state in MemberState:
        assert any(state in before for after, before in PREVIOUS.items() if after is not state)


def test_no_state_both_beats_and_is_outside() -> None:
    assert not MemberState.UNJOINED.beats
    assert not MemberState.FAILED.beats
    assert not MemberState.PREPARING_REBALANCE.beats, "a parked join is a sign of life itself"


@pytest.mark.parametrize("table", [JOIN, SYNC, HEARTBEAT, COMMIT, PLAIN])
def test_a_moved_coordinator_is_looked_for_whatever_was_asked(table: dict) -> None:  # type: ignore[type-arg]
    assert reaction(table, ErrorCode.NONE) is Reaction.GO_ON
    assert reaction(table, ErrorCode.NOT_COORDINATOR) is Reaction.FIND_COORDINATOR
    assert reaction(table, ErrorCode.COORDINATOR_NOT_AVAILABLE) is Reaction.FIND_COORDINATOR
    assert reaction(table, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) is Reaction.TRY_AGAIN
    for code in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.FENCED_INSTANCE_ID, 9_999):
        assert reaction(table, code) is Reaction.FAIL


def metadata(racks: dict[int, str], *replicas: list[int]) -> ClusterMetadata:
    partitions = tuple(PartitionMetadata(n, replicas=r) for n, r in enumerate(replicas))
    return ClusterMetadata(
        brokers={b: BrokerInfo(b, "h", 1, rack) for b, rack in racks.items()},
        topics={"orders": TopicInfo("orders", "id", False, partitions)},
    )


def test_a_leader_sees_new_partitions_and_new_racks() -> None:
    before = metadata({1: "east", 2: "west"}, [1], [2])
    seen = partitions_of(before, ["orders", "missing"])
    assert seen == {"orders": (frozenset({"east"}), frozenset({"west"}))}
    assert changed(seen, before, ["orders", "missing"], racks_matter=True) == ""
    grown = metadata({1: "east", 2: "west"}, [1], [2], [1])
    assert "has 3 partitions, not 2" in changed(seen, grown, ["orders"], racks_matter=False)
    assert "has 0 partitions" in changed(seen, ClusterMetadata(), ["orders"], racks_matter=False)
    moved = metadata({1: "east", 2: "west"}, [2], [2])
    assert changed(seen, moved, ["orders"], racks_matter=False) == ""
    assert "other racks" in changed(seen, moved, ["orders"], racks_matter=True)


def test_a_member_with_malformed_bytes_gets_nothing_and_the_others_theirs() -> None:
    good = encode_subscription(Subscription(("orders",)))
    read = read_subscriptions([JoinGroupMember("a", metadata=good), JoinGroupMember("b", "", b"?")])
    assert read["a"].topics == ("orders",)
    assert read["b"].topics == ()

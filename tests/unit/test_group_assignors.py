"""What an assignment must be, whatever the group; Kafka's classes are compared in `kafka_tools`."""

from dataclasses import replace

import pytest
from barnabas.group.assignors import ASSIGNORS, Assignment, PartitionRacks, Subscription
from barnabas_common.topic_partition import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

TOPICS = ("flights", "orders", "rates")
RACKS = ("", "east", "west")

topics = st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)
members = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(7)]),
    st.tuples(topics, st.sampled_from(RACKS)),
    min_size=1,
)
racks = st.frozensets(st.sampled_from(RACKS[1:]), min_size=1)
partitions = st.dictionaries(st.sampled_from(TOPICS), st.lists(racks, min_size=1, max_size=7))


def subscriptions(group: dict[str, tuple[list[str], str]]) -> dict[str, Subscription]:
    return {m: Subscription(tuple(names), rack_id=rack) for m, (names, rack) in group.items()}


def owning(
    group: dict[str, Subscription], assignment: Assignment, generation: int
) -> dict[str, Subscription]:
    return {
        member: replace(
            group[member],
            owned_partitions=tuple(given),
            generation=generation,
            user_data=ASSIGNORS["sticky"].user_data(given, generation),
        )
        for member, given in assignment.items()
        if member in group
    }


def readable(partitions: PartitionRacks, group: dict[str, Subscription]) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for topic, all_racks in partitions.items()
        for number in range(len(all_racks))
        if any(topic in s.topics for s in group.values())
    }


def check(assignment: Assignment, group: dict[str, Subscription]) -> list[TopicPartition]:
    """All partitions given; each to one member, which reads its topic."""
    assert assignment.keys() == group.keys()
    given = [tp for tps in assignment.values() for tp in tps]
    assert len(given) == len(set(given))
    for member, tps in assignment.items():
        assert all(tp.topic in group[member].topics for tp in tps)
    return given


@pytest.mark.parametrize("name", ASSIGNORS)
@given(partitions=partitions, group=members)
def test_every_partition_has_one_reader(
    name: str, partitions: PartitionRacks, group: dict[str, tuple[list[str], str]]
) -> None:
    subscribed = subscriptions(group)
    assignment = ASSIGNORS[name].assign(partitions, subscribed)
    assert set(check(assignment, subscribed)) == readable(partitions, subscribed)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@given(partitions=partitions, group=members)
def test_nothing_moves_when_nothing_changed(
    name: str, partitions: PartitionRacks, group: dict[str, tuple[list[str], str]]
) -> None:
    subscribed = {m: Subscription(TOPICS) for m in group}
    first = ASSIGNORS[name].assign(partitions, subscribed)
    second = ASSIGNORS[name].assign(partitions, owning(subscribed, first, 1))
    assert {m: set(tps) for m, tps in first.items()} == {m: set(tps) for m, tps in second.items()}


@pytest.mark.parametrize("alike", [False, True])
@given(partitions=partitions, before=members, after=members)
@settings(max_examples=200)
def test_a_cooperative_group_hands_over_in_rounds(
    alike: bool,
    partitions: PartitionRacks,
    before: dict[str, tuple[list[str], str]],
    after: dict[str, tuple[list[str], str]],
) -> None:
    """No round gives anybody what another still owns, and in the end everything is given out.

    If all members read the same topics, and racks do not matter, that is the second round at the
    latest; otherwise Kafka's rules may take some more.
    """
    assign = ASSIGNORS["cooperative-sticky"].assign
    if alike:
        before, after = ({m: (list(TOPICS), "") for m in group} for group in (before, after))
    held = assign(partitions, subscriptions(before))
    now = subscriptions(after)
    for generation in range(1, 3 if alike else 11):
        now = now | owning(now, held, generation)
        held = assign(partitions, now)
        check(held, now)
        for member, taken in held.items():
            others = {tp for m, s in now.items() if m != member for tp in s.owned_partitions}
            assert others.isdisjoint(taken)
        if all(set(s.owned_partitions) <= set(held[m]) for m, s in now.items()):
            break
    else:
        assert alike, "members give up partitions without end"
    assert set(check(held, now)) == readable(partitions, now)


@given(partitions=partitions, group=members)
def test_equal_readers_get_equal_shares(
    partitions: PartitionRacks, group: dict[str, tuple[list[str], str]]
) -> None:
    subscribed = {m: replace(s, topics=TOPICS) for m, s in subscriptions(group).items()}
    for name in ("roundrobin", "sticky", "cooperative-sticky"):
        counts = list(map(len, ASSIGNORS[name].assign(partitions, subscribed).values()))
        assert max(counts) - min(counts) <= 1


def test_range_pairs_partitions_of_equal_topics() -> None:
    none = (frozenset[str](),) * 5
    group = {m: Subscription(("orders", "rates")) for m in ("a", "b")}
    assignment = ASSIGNORS["range"].assign({"orders": none, "rates": none}, group)
    assert [tp.partition for tp in assignment["a"]] == [0, 1, 2, 0, 1, 2]
    assert [tp.partition for tp in assignment["b"]] == [3, 4, 3, 4]


def test_static_members_come_first_whatever_their_member_ids() -> None:
    group = {
        "z": Subscription(("orders",), group_instance_id="1"),
        "b": Subscription(("orders",), group_instance_id="2"),
        "a": Subscription(("orders",)),
    }
    assignment = ASSIGNORS["range"].assign({"orders": (frozenset[str](),) * 3}, group)
    assert {m: [tp.partition for tp in tps] for m, tps in assignment.items()} == {
        "z": [0],
        "b": [1],
        "a": [2],
    }


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_two_claims_of_one_generation_count_for_neither(name: str) -> None:
    """KIP-792: and with cooperative-sticky nobody gets the partition before both gave it up."""
    tp = TopicPartition("orders", 0)
    data = ASSIGNORS["sticky"].user_data([tp], 4)
    claim = Subscription(("orders",), (tp,), 4, user_data=data)
    assignment = ASSIGNORS[name].assign({"orders": (frozenset[str](),)}, {"a": claim, "b": claim})
    given = [tp for tps in assignment.values() for tp in tps]
    assert given == ([] if name == "cooperative-sticky" else [tp])


@pytest.mark.parametrize("data", [b"\0", b"\0\0\0\x09", b"\xff\xff\xff\xff"])
def test_user_data_that_make_no_sense_are_no_claim(data: bytes) -> None:
    group = {m: Subscription(("orders",), user_data=data) for m in ("a", "b")}
    assignment = ASSIGNORS["sticky"].assign({"orders": (frozenset[str](),) * 4}, group)
    assert sorted(map(len, assignment.values())) == [2, 2]


def test_a_claim_to_a_partition_that_no_longer_exists_is_dropped() -> None:
    gone = (TopicPartition("orders", 7), TopicPartition("deleted", 0))
    group = {
        "a": Subscription(("orders", "deleted"), gone, 3),
        "b": Subscription(("orders", "deleted")),
    }
    for name in ("sticky", "cooperative-sticky"):
        assignment = ASSIGNORS[name].assign({"orders": (frozenset[str](),) * 2}, group)
        assert sorted(map(len, assignment.values())) == [1, 1]

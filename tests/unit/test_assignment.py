"""Replica assignment: Kafka's rule, the plain rule inside it, and racks."""

import random
from collections import Counter

import pytest
from barnabas_common.errors import InvalidPartitionsError, InvalidReplicationFactorError
from barnabas_controller.topics.assignment import (
    assign_across_racks,
    assign_more_replicas,
    assign_replicas,
    assign_round_robin,
    rack_alternated,
)
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[int], int, int]:
    brokers = sorted(draw(st.sets(st.integers(0, 100), min_size=1, max_size=9)))
    return brokers, draw(st.integers(1, 40)), draw(st.integers(1, len(brokers)))


def test_kafkas_own_example_with_start_and_shift_0() -> None:
    # AdminRackAwareTest/AdminUtils' documentation: 5 brokers, 10 partitions, 3 replicas.
    assigned = assign_round_robin([0, 1, 2, 3, 4], 10, 3, start_index=0, shift=0)
    assert assigned == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


@given(clusters())
def test_the_plain_rule_is_start_0_and_the_shift_held_at_0(
    cluster: tuple[list[int], int, int],
) -> None:
    brokers, partitions, factor = cluster
    n = len(brokers)
    assert assign_round_robin(brokers, partitions, factor, 0, 0, shift_step=0) == [
        tuple(brokers[(i + j) % n] for j in range(factor)) for i in range(partitions)
    ]


@given(clusters(), st.integers())
def test_replicas_are_distinct_and_leaders_are_spread_evenly(
    cluster: tuple[list[int], int, int], seed: int
) -> None:
    brokers, partitions, factor = cluster
    assigned = assign_replicas(
        dict.fromkeys(brokers, None), partitions, factor, random.Random(seed)
    )
    assert len(assigned) == partitions
    for replicas in assigned:
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(brokers)
    leaders = Counter(replicas[0] for replicas in assigned)
    counts = [leaders[broker] for broker in brokers]
    assert max(counts) - min(counts) <= 1


class Drawn:
    """A source of randomness that returns these numbers in turn."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = iter(numbers)

    def randrange(self, stop: int) -> int:
        number = next(self._numbers)
        assert 0 <= number < stop
        return number


@pytest.mark.parametrize(("start", "shift"), [(0, 0), (3, 0), (0, 2), (4, 4)])
def test_start_and_shift_are_drawn_for_each_topic(start: int, shift: int) -> None:
    brokers = [1, 2, 3, 5, 8]
    drawn = assign_replicas(dict.fromkeys(brokers), 7, 3, Drawn(start, shift))  # type: ignore[arg-type]
    assert drawn == assign_round_robin(brokers, 7, 3, start, shift)
    assert drawn[0][0] == brokers[start]


@pytest.mark.parametrize("start", range(5))
def test_new_partitions_are_placed_as_if_they_had_been_created_with_the_others(start: int) -> None:
    """Kafka takes the first replica of partition 0 for the shift too."""
    racks = dict.fromkeys(range(5))
    all_at_once = assign_round_robin(range(5), 12, 3, start_index=start, shift=start)
    assert assign_more_replicas(racks, all_at_once[0], 4, 8) == all_at_once[4:]


def test_racks_alternate_in_the_list_of_brokers() -> None:
    racks = {0: "r1", 1: "r3", 2: "r3", 3: "r2", 4: "r2", 5: "r1"}
    assert rack_alternated(racks) == [0, 3, 1, 5, 4, 2]


def test_kafkas_rack_aware_example() -> None:
    # AdminUtils' documentation: brokers 0,3,1,5,4,2 in turns of rack1, rack2, rack3.
    racks = {0: "r1", 5: "r1", 3: "r2", 4: "r2", 1: "r3", 2: "r3"}
    assert assign_across_racks(racks, 7, 3, start_index=0, shift=0) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


@given(
    st.dictionaries(st.integers(0, 50), st.sampled_from("abc"), min_size=1, max_size=9),
    st.integers(1, 30),
    st.data(),
)
def test_no_rack_gets_a_second_replica_before_every_rack_has_one(
    racks: dict[int, str], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    seed = data.draw(st.integers())
    for replicas in assign_replicas(racks, partitions, factor, random.Random(seed)):
        assert len(set(replicas)) == factor
        used = {racks[replica] for replica in replicas}
        assert len(used) == min(factor, len(set(racks.values())))


def test_racks_are_ignored_unless_every_broker_has_one() -> None:
    assigned = assign_replicas({1: "a", 2: None, 3: "a"}, 6, 2, random.Random(1))
    assert len(assigned) == 6


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (0, 1, InvalidPartitionsError),
        (-5, 1, InvalidPartitionsError),
        (1, 0, InvalidReplicationFactorError),
        (1, 4, InvalidReplicationFactorError),
    ],
)
def test_impossible_counts_are_refused(partitions: int, factor: int, error: type) -> None:
    with pytest.raises(error):
        assign_replicas({1: None, 2: None, 3: None}, partitions, factor, random.Random(1))


def test_without_brokers_the_replication_factor_is_too_large() -> None:
    with pytest.raises(InvalidReplicationFactorError):
        assign_replicas({}, 1, 1, random.Random(1))

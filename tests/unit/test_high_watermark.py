"""When the leader's high watermark moves, and to where."""

import pytest
from barnabas_broker.replica.leader.high_watermark import (
    Progress,
    holds_back,
    next_high_watermark,
)
from hypothesis import given
from hypothesis import strategies as st


def test_it_is_the_smallest_log_end_of_those_it_waits_for() -> None:
    assert (
        next_high_watermark(Progress(5, 30, {2: 20, 3: 25}, in_sync_count=3, min_in_sync=2)) == 20
    )


def test_a_leader_alone_commits_what_it_has() -> None:
    assert next_high_watermark(Progress(5, 30, {}, in_sync_count=1, min_in_sync=1)) == 30


def test_it_waits_for_a_member_that_has_not_fetched_since_the_leader_began() -> None:
    assert next_high_watermark(Progress(5, 30, {2: 30, 3: -1}, in_sync_count=3, min_in_sync=1)) == 5


def test_it_never_goes_back() -> None:
    assert next_high_watermark(Progress(25, 30, {2: 20}, in_sync_count=2, min_in_sync=1)) == 25


def test_it_stays_while_the_isr_is_under_the_minimum() -> None:
    assert next_high_watermark(Progress(5, 30, {}, in_sync_count=1, min_in_sync=2)) == 5


@pytest.mark.parametrize(
    ("in_maximal_isr", "caught_up", "alive", "waits"),
    [
        (True, False, False, True),
        (False, True, True, True),  # about to join: otherwise it could never catch up with the HW
        (False, True, False, False),
        (False, False, True, False),
    ],
)
def test_who_it_waits_for(in_maximal_isr: bool, caught_up: bool, alive: bool, waits: bool) -> None:
    assert holds_back(in_maximal_isr, caught_up, alive) is waits


@given(
    current=st.integers(0, 100),
    leader=st.integers(0, 100),
    awaited=st.lists(st.integers(-1, 120), max_size=5),
    in_sync=st.integers(1, 4),
    minimum=st.integers(1, 4),
)
def test_no_awaited_replica_ever_lacks_a_newly_committed_record(
    current: int, leader: int, awaited: list[int], in_sync: int, minimum: int
) -> None:
    moved_to = next_high_watermark(
        Progress(current, leader, dict(enumerate(awaited)), in_sync, minimum)
    )
    assert moved_to >= current
    if moved_to > current:
        assert moved_to <= leader
        assert all(end >= moved_to for end in awaited)
        assert in_sync >= minimum

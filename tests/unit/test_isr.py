"""Which replicas are in sync, join and leave (Kafka's rules; KIP-497 for changes in flight)."""

import pytest
from barnabas_broker.replica.leader.in_sync import (
    NEVER,
    InSyncReplicas,
    RemoteReplica,
    effective_min_in_sync,
    is_follower_in_sync,
    out_of_sync_replicas,
)
from hypothesis import given
from hypothesis import strategies as st

MAX_LAG = 30.0


def test_a_follower_at_the_log_end_is_caught_up_now() -> None:
    follower = RemoteReplica(2)
    follower.record_fetch(100, 100, now=50.0)
    assert follower.last_caught_up_time == 50.0


def test_a_follower_one_fetch_behind_was_caught_up_at_its_previous_fetch() -> None:
    follower = RemoteReplica(2)
    follower.record_fetch(50, 100, now=10.0)
    follower.record_fetch(100, 150, now=11.0)
    assert follower.last_caught_up_time == 10.0


def test_a_follower_that_falls_further_behind_is_not_caught_up_again() -> None:
    follower = RemoteReplica(2)
    follower.record_fetch(100, 100, now=10.0)
    follower.record_fetch(110, 200, now=11.0)
    follower.record_fetch(120, 300, now=12.0)
    assert follower.last_caught_up_time == 10.0
    assert not follower.is_caught_up(300, now=10.0 + MAX_LAG + 0.1, max_lag=MAX_LAG)
    assert follower.is_caught_up(300, now=10.0 + MAX_LAG, max_lag=MAX_LAG)


def test_a_silent_follower_that_has_everything_stays_caught_up() -> None:
    follower = RemoteReplica(2)
    follower.record_fetch(100, 100, now=10.0)
    assert follower.is_caught_up(100, now=10_000.0, max_lag=MAX_LAG)


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0.0, 5.0)),
        min_size=1,
        max_size=30,
    )
)
def test_caught_up_time_means_that_the_follower_had_all_the_leader_had_then(
    steps: list[tuple[int, int, float]],
) -> None:
    """In every run, at the last caught-up time the leader had no more than the follower has now."""
    follower = RemoteReplica(2)
    leader_end, fetch_offset, now = 0, 0, 100.0
    ends_at: list[tuple[float, int]] = []
    for grows, reads, passes in steps:
        now += passes
        leader_end += grows
        fetch_offset = min(leader_end, fetch_offset + reads)
        ends_at.append((now, leader_end))
        before = follower.last_caught_up_time
        follower.record_fetch(fetch_offset, leader_end, now)
        caught_up = follower.last_caught_up_time
        assert caught_up >= before
        if caught_up != NEVER:
            assert any(end <= fetch_offset for time, end in ends_at if time == caught_up)


def test_a_new_leader_knows_no_offsets_but_gives_members_a_full_lag_time() -> None:
    follower = RemoteReplica(2, log_end_offset=80)
    follower.begin_epoch(100, in_sync=True, keep_offset=False, now=10.0)
    assert follower.log_end_offset == -1
    assert follower.is_caught_up(100, now=10.0 + MAX_LAG, max_lag=MAX_LAG)
    assert not follower.is_caught_up(100, now=10.1 + MAX_LAG, max_lag=MAX_LAG)


def test_a_leader_that_goes_on_leading_keeps_the_offsets_it_knows() -> None:
    follower = RemoteReplica(2, log_end_offset=80)
    follower.begin_epoch(100, in_sync=False, keep_offset=True, now=10.0)
    assert follower.log_end_offset == 80
    assert follower.last_fetch_leader_log_end_offset == 100
    assert follower.last_caught_up_time == NEVER


@pytest.mark.parametrize(
    ("log_end_offset", "high_watermark", "epoch_start", "joins"),
    [
        (100, 100, 90, True),
        (100, 90, 100, True),
        (100, 101, 90, False),  # a committed record is missing
        (100, 90, 101, False),  # not yet compared with this leader's log
        (-1, 0, 0, False),
    ],
)
def test_a_follower_joins_with_all_that_is_committed_and_this_epoch_reached(
    log_end_offset: int, high_watermark: int, epoch_start: int, joins: bool
) -> None:
    assert is_follower_in_sync(log_end_offset, high_watermark, epoch_start) is joins


def test_only_lagging_members_leave_and_never_the_leader() -> None:
    followers = {
        2: RemoteReplica(2, log_end_offset=100),
        3: RemoteReplica(3, log_end_offset=90, last_caught_up_time=60.0),
        4: RemoteReplica(4, log_end_offset=90, last_caught_up_time=80.0),
        5: RemoteReplica(5, log_end_offset=0),
    }
    assert out_of_sync_replicas((1, 2, 3, 4), followers, 100, now=100.0, max_lag=MAX_LAG) == [3]


def test_the_maximal_isr_is_the_larger_one_while_a_change_is_under_way() -> None:
    committed = InSyncReplicas((1, 2))
    assert committed.maximal == (1, 2)
    assert not committed.in_flight
    expanding = committed.expanding(3)
    assert expanding.maximal == (1, 2, 3)
    assert expanding.committed == (1, 2)
    shrinking = committed.shrinking([2])
    assert shrinking.proposed == (1,)
    assert shrinking.maximal == (1, 2)
    assert shrinking.rolled_back() == committed


def test_min_in_sync_never_exceeds_the_number_of_replicas() -> None:
    assert effective_min_in_sync(2, 3) == 2
    assert effective_min_in_sync(2, 1) == 1

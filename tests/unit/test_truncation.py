"""Where a follower truncates (KIP-101, KIP-279): tables, and a property of all histories."""

import pytest
from barnabas_broker.log.epochs.leader_epoch_cache import EpochEnd
from barnabas_broker.replica.follower.truncation import (
    OutOfRange,
    Truncation,
    TruncationPolicy,
    diverges,
    out_of_range,
    truncation,
)
from barnabas_broker.replica.leader_epoch import check_leader_epoch
from barnabas_common.errors import FencedLeaderEpochError, UnknownLeaderEpochError
from hypothesis import given
from hypothesis import strategies as st

UNDEFINED = EpochEnd(-1, -1)


@pytest.mark.parametrize(
    ("leader", "local", "log_end", "fetch_offset", "expected"),
    [
        # The leader does not know the epoch: back to where fetching began.
        (UNDEFINED, UNDEFINED, 20, 12, Truncation(12, True)),
        # An ancient leader without epochs in its answer.
        (EpochEnd(-1, 15), EpochEnd(3, 20), 20, 20, Truncation(15, True)),
        # The local log has no record of that epoch or an earlier one.
        (EpochEnd(2, 15), UNDEFINED, 20, 20, Truncation(15, True)),
        # Both have the epoch: the shorter one counts.
        (EpochEnd(2, 15), EpochEnd(2, 20), 20, 20, Truncation(15, True)),
        (EpochEnd(2, 25), EpochEnd(2, 18), 20, 20, Truncation(18, True)),
        (EpochEnd(2, 25), EpochEnd(2, 25), 20, 20, Truncation(20, True)),
        # The local log lacks exactly that epoch: truncate later epochs and ask again.
        (EpochEnd(1, 15), EpochEnd(0, 10), 20, 20, Truncation(10, False)),
    ],
)
def test_the_decision_of_one_round(
    leader: EpochEnd, local: EpochEnd, log_end: int, fetch_offset: int, expected: Truncation
) -> None:
    assert truncation(leader, local, log_end, fetch_offset) == expected


@pytest.mark.parametrize(
    ("epoch", "offset", "leader", "differs"),
    [
        (2, 10, EpochEnd(2, 10), False),
        (2, 10, EpochEnd(2, 30), False),
        (2, 11, EpochEnd(2, 10), True),
        (2, 10, EpochEnd(1, 30), True),
    ],
)
def test_a_fetch_beyond_the_epochs_end_or_of_an_unknown_epoch_shows_divergence(
    epoch: int, offset: int, leader: EpochEnd, differs: bool
) -> None:
    assert diverges(epoch, offset, leader) is differs


def test_fetching_starts_at_the_log_end_never_at_the_high_watermark_if_there_are_epochs() -> None:
    assert TruncationPolicy().start_of_fetching(3, 20, 12) == 20
    assert TruncationPolicy().start_of_fetching(None, 20, 12) == 12


def test_by_high_watermark_the_follower_cuts_alone_and_no_epoch_travels() -> None:
    """Kafka before 0.11."""
    policy = TruncationPolicy(by_high_watermark=True, asks_before_fetching=True)
    assert policy.start_of_fetching(3, 20, 12) == 12
    assert policy.last_fetched_epoch(3) == -1
    assert TruncationPolicy(by_high_watermark=True).last_fetched_epoch(3) == -1
    assert not policy.must_ask(3)


def test_who_asks_before_fetching_sends_no_epoch_with_the_fetch() -> None:
    """Kafka from 0.11 to 2.6; since then the fetch itself asks."""
    asking = TruncationPolicy(asks_before_fetching=True)
    assert asking.must_ask(3) and not asking.must_ask(None)
    assert asking.start_of_fetching(3, 20, 12) == 20
    assert asking.last_fetched_epoch(3) == -1
    assert TruncationPolicy().last_fetched_epoch(3) == 3
    assert not TruncationPolicy().must_ask(3)


def test_out_of_range_cuts_restarts_or_goes_on() -> None:
    assert out_of_range(20, 0, 15) == OutOfRange(truncate_to=15)
    assert out_of_range(20, 30, 50) == OutOfRange(restart_at=30)
    assert out_of_range(20, 10, 50) == OutOfRange()


def test_an_older_epoch_is_fenced_and_a_newer_one_unknown() -> None:
    check_leader_epoch(-1, 5)
    check_leader_epoch(5, 5)
    with pytest.raises(FencedLeaderEpochError):
        check_leader_epoch(4, 5)
    with pytest.raises(UnknownLeaderEpochError):
        check_leader_epoch(6, 5)


# A log as the epoch of each of its records; a real log's epochs never fall.
History = list[int]


def end_of_epoch(log: History, epoch: int) -> EpochEnd:
    """Return a leader's answer by Kafka's table (`LeaderEpochFileCache.endOffsetFor`)."""
    if not log or epoch > log[-1]:
        return UNDEFINED
    if epoch == log[-1]:
        return EpochEnd(epoch, len(log))
    later = next(offset for offset, e in enumerate(log) if e > epoch)
    return EpochEnd(log[later - 1] if later else epoch, later)


def follow(follower: History, leader: History) -> tuple[History, int]:
    """Fetch and truncate until the leader sees no divergence; returns the log and the rounds."""
    rounds = 0
    while follower:
        answer = end_of_epoch(leader, follower[-1])
        if answer == UNDEFINED or not diverges(follower[-1], len(follower), answer):
            break
        rounds += 1
        local = end_of_epoch(follower, answer.epoch)
        decision = truncation(answer, local, len(follower), len(follower))
        assert decision.offset < len(follower), "a round that cuts nothing would never end"
        follower = follower[: decision.offset]
    return follower, rounds


def common_prefix(one: History, other: History) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def test_three_fast_elections_need_the_epoch_in_the_answer() -> None:
    """KIP-279: with offsets alone, the follower would keep ten records the leader never had."""
    follower = [0] * 10 + [2] * 10
    leader = [0] * 10 + [1] * 5 + [3]
    assert follow(follower, leader) == ([0] * 10, 1)


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, History]:
    """Draw two replicas' logs with a common beginning.

    One of the two, or a third replica, led each later epoch, so that no two logs hold different
    records of one epoch.
    """
    common = sorted(draw(st.lists(st.integers(0, 3), max_size=8)))
    first = common[-1] + 1 if common else 0
    one, other = list(common), list(common)
    for epoch in range(first, first + draw(st.integers(0, 6))):
        (one if draw(st.booleans()) else other).extend([epoch] * draw(st.integers(0, 4)))
    last = max([*one, *other, -1]) + 1
    return one, [*other, last]  # the leader has started its own epoch


@given(histories())
def test_truncating_by_epochs_leaves_exactly_the_common_prefix(
    logs: tuple[History, History],
) -> None:
    follower, leader = logs
    result, rounds = follow(follower, leader)
    assert result == leader[: len(result)]
    assert len(result) == common_prefix(follower, leader)
    assert rounds <= len(set(follower)) + 1

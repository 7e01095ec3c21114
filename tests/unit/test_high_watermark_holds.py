"""The explanation of what holds the high watermark back follows the rule that moves it."""

import pytest
from barnabas_broker.replica.leader.high_watermark import (
    Progress,
    next_high_watermark,
    what_holds,
)
from barnabas_broker.replica.leader.last_replica import what_holds_last_replica
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("awaited", "in_sync", "because", "by"),
    [
        ({2: 100, 3: 100}, 3, "", ()),
        ({2: 40, 3: 100}, 3, "broker 2 has fetched only up to offset 40", (2,)),
        ({2: 40, 3: 40}, 3, "broker 2 and broker 3 have fetched only up to offset 40", (2, 3)),
        ({2: -1, 3: 100}, 3, "broker 2 has not fetched from this leader yet", (2,)),
    ],
)
def test_the_slowest_followers_are_named(awaited, in_sync, because, by):
    hold = what_holds(Progress(min(awaited.values()), 100, awaited, in_sync, 2))
    assert (hold.because, hold.by) == (because, by)


def test_a_too_small_isr_is_named_before_any_follower():
    hold = what_holds(Progress(40, 100, {2: 40}, in_sync_count=1, min_in_sync=2))
    assert "the ISR has 1 of the 2 members" in hold.because and hold.by == ()


def test_what_is_not_flushed_holds_a_last_replica():
    hold = what_holds_last_replica(Progress(70, 70, {}, 1, 0), log_end_offset=100)
    assert "ends at offset 70" in hold.because


offsets = st.integers(-1, 5)


@given(st.integers(0, 5), offsets, st.dictionaries(st.integers(2, 4), offsets), st.integers(1, 3))
def test_something_is_named_whenever_the_rule_leaves_it_below_the_end(end, flushed, awaited, least):
    flushed = max(0, min(flushed, end))
    awaited = {broker: min(offset, end) for broker, offset in awaited.items()}
    plain = Progress(0, end, awaited, len(awaited) + 1, least)
    at = next_high_watermark(plain)
    assert bool(what_holds(plain._replace(high_watermark=at)).because) == (at < end)
    last = plain._replace(end_offset=flushed)
    at = next_high_watermark(last)
    hold = what_holds_last_replica(last._replace(high_watermark=at), end)
    assert bool(hold.because) == (at < end)

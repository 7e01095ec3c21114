"""What is said to hold the high watermark back follows the rule that moves it."""

import pytest
from barnabas_broker.replica.high_watermark import next_high_watermark, what_holds
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
    hold = what_holds(min(awaited.values()), 100, 100, awaited, in_sync, 2)
    assert (hold.because, hold.by) == (because, by)


def test_a_thin_isr_is_named_before_any_follower():
    hold = what_holds(40, 100, 100, {2: 40}, in_sync_count=1, min_in_sync=2)
    assert "the ISR has 1 of the 2 members" in hold.because and hold.by == ()


def test_what_is_not_flushed_holds_a_last_replica():
    assert "ends at offset 70" in what_holds(70, 100, 70, {}, 1, 0).because


offsets = st.integers(-1, 5)


@given(st.integers(0, 5), offsets, st.dictionaries(st.integers(2, 4), offsets), st.integers(1, 3))
def test_something_is_named_whenever_the_rule_leaves_it_below_the_end(end, durable, awaited, least):
    durable = max(0, min(durable, end))
    awaited = {broker: min(offset, end) for broker, offset in awaited.items()}
    at = next_high_watermark(0, durable, awaited.values(), len(awaited) + 1, least)
    hold = what_holds(at, end, durable, awaited, len(awaited) + 1, least)
    assert bool(hold.because) == (at < end)

"""Which offsets each Spark task reads, and where a micro-batch ends."""

import pytest
from barnabas_common.topic_partition import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark_barnabas.options import EARLIEST, LATEST, Limit, OptionError
from pyspark_barnabas.reading.admission import TriggerDelay, available, share_out
from pyspark_barnabas.reading.bounds import Bounds, plan_ranges, resolve, timestamps_of
from pyspark_barnabas.reading.errors import DataLossError
from pyspark_barnabas.reading.ranges import OffsetRange, split
from pyspark_barnabas.reading.stream_offsets import StreamOffsets

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BOUNDS = {A: Bounds(10, 110), B: Bounds(0, 50)}

sizes = st.lists(st.integers(0, 1_000), min_size=1, max_size=12)
unhurried = settings(deadline=None)


def starting(offsets, fail=True):
    return resolve(Limit("startingOffsets", offsets), BOUNDS, {}, fail)


def ranges_of(counts, first=7):
    return [OffsetRange("t", p, first, first + count, "id") for p, count in enumerate(counts)]


# ---- where a batch starts and ends


def test_the_whole_topic_is_one_range_a_partition():
    starts, ends = starting(EARLIEST), starting(LATEST)
    assert plan_ranges(BOUNDS, starts, ends, {"t": "id"}) == [
        OffsetRange("t", 0, 10, 110, "id"),
        OffsetRange("t", 1, 0, 50, "id"),
    ]


def test_an_empty_partition_has_no_range():
    assert plan_ranges({A: Bounds(5, 5)}, {A: 5}, {A: 5}, {}) == []


def test_given_offsets_and_their_special_values():
    assert starting({"t": {0: 20, 1: EARLIEST}}) == {A: 20, B: 0}
    assert starting({"t": {0: LATEST, 1: 7}}) == {A: 110, B: 7}


@pytest.mark.parametrize(("offset", "nearest"), [(9, 10), (111, 110)])
def test_offsets_that_do_not_exist_are_data_loss(offset, nearest):
    with pytest.raises(DataLossError, match=r"KAFKA_DATA_LOSS.START_OFFSET_RESET\] t-0"):
        starting({"t": {0: offset, 1: 0}})
    assert starting({"t": {0: offset, 1: 0}}, fail=False) == {A: nearest, B: 0}


def test_given_offsets_must_name_every_partition():
    with pytest.raises(OptionError, match=r"KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED.*missing"):
        starting({"t": {0: 20}})
    with pytest.raises(OptionError, match="unknown"):
        starting({"t": {0: 20, 1: 1, 2: 1}})


def test_a_range_cannot_run_backwards():
    with pytest.raises(OptionError, match="RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET.*above"):
        plan_ranges(BOUNDS, {A: 50, B: 0}, {A: 40, B: 0}, {})


def test_timestamps_for_all_partitions_or_for_each():
    assert timestamps_of(Limit("startingTimestamp", timestamps=5), BOUNDS) == {A: 5, B: 5}
    each = Limit("startingOffsetsByTimestamp", timestamps={"t": {0: 5, 1: 6}})
    assert timestamps_of(each, BOUNDS) == {A: 5, B: 6}
    assert timestamps_of(Limit("startingOffsets"), BOUNDS) == {}
    with pytest.raises(OptionError, match="KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        timestamps_of(Limit("startingOffsetsByTimestamp", timestamps={"t": {0: 5}}), BOUNDS)


def test_a_timestamp_without_a_record_is_an_error_or_the_end():
    found = {A: 30, B: None}
    strict = Limit("startingOffsetsByTimestamp", timestamps={"t": {0: 1, 1: 999}})
    with pytest.raises(OptionError, match="no offset matched: t-1 has no record at 999 ms"):
        resolve(strict, BOUNDS, found, fail=True)
    lenient = Limit("startingTimestamp", timestamps=5, latest_if_unmatched=True)
    assert resolve(lenient, BOUNDS, found, fail=True) == {A: 30, B: 50}


# ---- splitting


@unhurried
@given(sizes, st.integers(0, 40), st.none() | st.integers(1, 3000))
def test_splitting_keeps_every_offset_exactly_once_and_in_order(counts, wanted, most):
    whole = ranges_of(counts)
    pieces = split(whole, wanted, most)
    assert all(piece.size > 0 and piece.topic_id == "id" for piece in pieces)
    for one in whole:
        mine = [piece for piece in pieces if piece.partition == one.partition]
        cuts = [one.start, *(piece.end for piece in mine)]
        assert [piece.start for piece in mine] == cuts[:-1]
        assert cuts[-1] == one.end


@unhurried
@given(sizes, st.integers(1, 3000))
def test_no_piece_has_more_records_than_allowed(counts, most):
    assert all(piece.size <= most for piece in split(ranges_of(counts), 0, most))


@pytest.mark.parametrize("wanted", [3, 10, 1000])
def test_about_as_many_pieces_as_wanted(wanted):
    pieces = split([OffsetRange("t", 0, 10, 110), OffsetRange("t", 1, 0, 50)], wanted)
    assert len(pieces) >= min(wanted, 150) * 0.9


def test_a_small_range_stays_whole_and_does_not_cost_the_large_one_its_pieces():
    pieces = split(ranges_of([1000, 10, 10]), 6)
    assert [piece.partition for piece in pieces] == [0, 0, 0, 0, 1, 2]


# ---- admission


def positions(counts, first=7):
    starts = {TopicPartition("t", p): first for p in range(len(counts))}
    return starts, {tp: first + count for tp, count in zip(starts, counts, strict=True)}


@unhurried
@given(sizes, st.integers(1, 20_000))
def test_shares_are_in_proportion_and_no_partition_starves(counts, limit):
    starts, ends = positions(counts)
    shared = share_out(limit, starts, ends)
    total = sum(counts)
    assert shared.keys() == ends.keys()
    for tp, end in ends.items():
        size, share = end - starts[tp], shared[tp] - starts[tp]
        assert 0 <= share <= size
        if total > limit and size:
            assert share == max(limit * size // total, 1)
    taken = available(starts, shared)
    # One offset for each partition whose share would be less than one.
    assert taken <= limit + sum(1 for count in counts if 0 < limit * count < total)
    assert taken == total or total > limit


@unhurried
@given(sizes, st.integers(20, 500))
def test_batch_after_batch_everything_is_read_once(counts, limit):
    starts, ends = positions(counts)
    batches = 0
    while starts != ends:
        after = share_out(limit, starts, ends)
        assert all(starts[tp] <= after[tp] for tp in ends)
        assert available(starts, after) > 0
        starts, batches = after, batches + 1
    assert batches <= sum(counts)


def test_a_partition_whose_end_lies_below_its_start_gets_nothing():
    assert share_out(10, {A: 5, B: 0}, {A: 5, B: 100}) == {A: 5, B: 10}


def test_a_batch_with_too_few_offsets_is_held_back_for_a_limited_time():
    delay = TriggerDelay(min_offsets=100, max_delay_ms=1_000)
    assert not delay.holds_back(1, now_ms=0), "the first batch of a run waits for nothing"
    assert delay.holds_back(99, now_ms=10)
    assert not delay.holds_back(100, now_ms=20)
    assert delay.holds_back(1, now_ms=1_019)
    assert not delay.holds_back(1, now_ms=1_020)
    assert delay.holds_back(1, now_ms=1_021)


# ---- positions in the checkpoint


def test_a_position_is_what_kafkas_source_writes_and_the_ids():
    offsets = StreamOffsets({TopicPartition("t", 10): 3, B: 1, A: 2}, {"t": "id"}, "g")
    found = offsets.to_json()
    assert list(found["t"].items()) == [("0", 2), ("1", 1), ("10", 3)]
    assert found["@barnabas"] == {"group.id": "g", "topic.ids": {"t": "id"}}
    assert StreamOffsets.from_json(found) == offsets

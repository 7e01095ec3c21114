"""Which offsets each Spark task reads, and which options are refused."""

import pytest
from barnabas_common.topic_partition import TopicPartition
from pyspark_barnabas.options import EARLIEST, LATEST, OptionError, parse_options
from pyspark_barnabas.planning import Bounds, DataLossError, OffsetRange, plan_ranges

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BOUNDS = {A: Bounds(10, 110), B: Bounds(0, 50)}
REQUIRED = {"bootstrap.servers": "localhost:9092", "subscribe": "t"}


def test_the_whole_topic_is_one_range_a_partition():
    assert plan_ranges(BOUNDS, EARLIEST, LATEST, True) == [
        OffsetRange("t", 0, 10, 110),
        OffsetRange("t", 1, 0, 50),
    ]


def test_an_empty_partition_has_no_range():
    assert plan_ranges({A: Bounds(5, 5)}, EARLIEST, LATEST, True) == []


def test_given_offsets_and_their_special_values():
    starting = {"t": {0: 20, 1: EARLIEST}}
    ending = {"t": {0: LATEST, 1: 7}}
    assert plan_ranges(BOUNDS, starting, ending, True) == [
        OffsetRange("t", 0, 20, 110),
        OffsetRange("t", 1, 0, 7),
    ]


@pytest.mark.parametrize("offset", [9, 111])
def test_offsets_that_do_not_exist_are_data_loss(offset):
    starting = {"t": {0: offset, 1: 0}}
    with pytest.raises(DataLossError, match="t-0"):
        plan_ranges(BOUNDS, starting, LATEST, True)
    clamped = plan_ranges(BOUNDS, starting, LATEST, False)
    assert clamped[0] == OffsetRange("t", 0, 10, 110) if offset < 10 else OffsetRange("t", 1, 0, 50)


def test_given_offsets_must_name_every_partition():
    with pytest.raises(OptionError, match="missing"):
        plan_ranges(BOUNDS, {"t": {0: 20}}, LATEST, True)
    with pytest.raises(OptionError, match="unknown"):
        plan_ranges(BOUNDS, {"t": {0: 20, 1: 1, 2: 1}}, LATEST, True)


def test_a_range_cannot_run_backwards():
    with pytest.raises(OptionError, match="above the end"):
        plan_ranges({A: BOUNDS[A]}, {"t": {0: 50}}, {"t": {0: 40}}, True)


@pytest.mark.parametrize("wanted", [3, 10, 1000])
def test_splitting_keeps_every_offset_exactly_once(wanted):
    ranges = plan_ranges(BOUNDS, EARLIEST, LATEST, True, min_partitions=wanted)
    offsets = [(r.partition, offset) for r in ranges for offset in range(r.start, r.end)]
    assert sorted(offsets) == [
        *((0, offset) for offset in range(10, 110)),
        *((1, offset) for offset in range(50)),
    ]
    assert len(ranges) >= min(wanted, 150) * 0.9


def test_options_in_any_case_as_spark_lowers_them():
    options = parse_options(
        REQUIRED | {"startingoffsets": '{"t": {"0": 3}}', "failOnDataLoss": "FALSE"}
    )
    assert options.starting_offsets == {"t": {0: 3}}
    assert options.fail_on_data_loss is False
    assert options.topics == {"t": None}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"subscribe": "t"}, "bootstrap.servers"),
        ({"bootstrap.servers": "x:1"}, "subscribe"),
        (REQUIRED | {"assign": "{}"}, "exactly one"),
        (REQUIRED | {"group.id": "g"}, "group.id"),
        (REQUIRED | {"startingOffsets": "latest"}, "cannot be"),
        (REQUIRED | {"endingOffsets": "earliest"}, "cannot be"),
        (REQUIRED | {"startingOffsets": "soon"}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": -1}}'}, "cannot be latest"),
        (REQUIRED | {"endingOffsets": '{"t": {"0": -2}}'}, "cannot be earliest"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": 1.5}}'}, "neither"),
        (REQUIRED | {"minPartitions": "-1"}, "whole number"),
        (REQUIRED | {"failOnDataLoss": "maybe"}, "true or false"),
        ({"bootstrap.servers": "x:1", "assign": "t"}, "JSON"),
        (REQUIRED | {"isolation.level": "serializable"}, "isolation.level"),
        ({"bootstrap.servers": "x:1", "assign": '{"t": []}'}, "no partition"),
        ({"bootstrap.servers": "x:1", "assign": '{"t": [true]}'}, "JSON"),
    ],
)
def test_bad_options_are_refused_by_name(options, word):
    with pytest.raises(OptionError, match=word):
        parse_options(options)

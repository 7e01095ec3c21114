"""Filters that shorten what a batch reads; those that ranges cannot express stay with Spark."""

from datetime import UTC, datetime
from typing import Any

import pytest
from barnabas_common.topic_partition import TopicPartition
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark_barnabas.options import ReadOptions
from pyspark_barnabas.reading import BatchReader
from pyspark_barnabas.reading.pushed_filters import push
from pyspark_barnabas.reading.ranges import OffsetRange

WHOLE = OffsetRange("t", 1, 100, 200, "id")
TP = TopicPartition("t", 1)
OFFSET, PARTITION, TOPIC, TIME = ("offset",), ("partition",), ("topic",), ("timestamp",)
SECOND = datetime(1970, 1, 1, 0, 0, 1, 500, tzinfo=UTC)


@pytest.mark.parametrize(
    ("filters", "start", "end"),
    [
        ([], 100, 200),
        ([GreaterThan(OFFSET, 150)], 151, 200),
        ([GreaterThanOrEqual(OFFSET, 150), GreaterThan(OFFSET, 20)], 150, 200),
        ([LessThan(OFFSET, 150), LessThanOrEqual(OFFSET, 170)], 100, 150),
        ([EqualTo(OFFSET, 150), IsNotNull(OFFSET)], 150, 151),
        ([EqualNullSafe(OFFSET, 5)], 100, 100),
        ([LessThan(OFFSET, 5)], 100, 100),
        ([GreaterThan(OFFSET, 500)], 501, 501),
    ],
)
def test_offsets_cut_a_range_and_nothing_is_left_for_spark(filters, start, end):
    pushed, left = push(filters)
    shortened = pushed.shortened(WHOLE)
    assert (shortened.start, shortened.end, shortened.topic_id) == (start, end, "id")
    assert left == []


@pytest.mark.parametrize(
    ("one", "chosen"),
    [
        (EqualTo(PARTITION, 1), True),
        (EqualTo(PARTITION, 2), False),
        (Not(EqualTo(PARTITION, 1)), False),
        (In(PARTITION, (0, 1)), True),
        (Not(In(PARTITION, (0, 1))), False),
        (GreaterThan(PARTITION, 1), False),
        (GreaterThanOrEqual(PARTITION, 1), True),
        (LessThan(PARTITION, 1), False),
        (LessThanOrEqual(PARTITION, 1), True),
        (EqualTo(TOPIC, "t"), True),
        (LessThan(TOPIC, "t"), False),
        (In(TOPIC, ("a", "b")), False),
    ],
)
def test_topics_and_partitions_are_chosen_and_nothing_is_left_for_spark(one, chosen):
    pushed, left = push([one])
    assert pushed.chooses(TP) is chosen
    assert left == []


@pytest.mark.parametrize(
    "one",
    [
        EqualTo(("value",), b"x"),
        IsNull(PARTITION),
        IsNotNull(("key",)),
        EqualTo(PARTITION, None),
        EqualTo(OFFSET, 1.5),
        Not(EqualTo(OFFSET, 150)),
        In(OFFSET, ()),
        In(PARTITION, (1, None)),
        StringStartsWith(TOPIC, "t"),
        LessThan(TIME, SECOND),
        EqualTo(("headers", "key"), "a"),
    ],
)
def test_what_ranges_cannot_express_stays_with_spark(one: Any):
    pushed, left = push([one])
    assert left == [one]
    assert pushed.chooses(TP)
    assert pushed.shortened(WHOLE) == WHOLE


@pytest.mark.parametrize("kind", [EqualTo, GreaterThan, GreaterThanOrEqual])
def test_a_time_shortens_a_range_at_its_start_and_spark_applies_it_too(kind: Any):
    pushed, left = push([kind(TIME, SECOND)])
    assert pushed.from_ms == 1_000
    assert pushed.shortened(WHOLE, 130).start == 130
    assert left == [kind(TIME, SECOND)]


def test_the_latest_of_several_times_counts():
    before = datetime(1960, 1, 1, tzinfo=UTC)
    later = datetime(1970, 1, 1, 0, 0, 9, tzinfo=UTC)
    pushed, _ = push([GreaterThan(TIME, t) for t in (SECOND, later, before)])
    assert pushed.from_ms == 9_000


def test_spark_does_not_refuse_the_reader_while_filters_are_not_pushed():
    reader = BatchReader(ReadOptions("localhost:1"))
    # Spark's own check, in `plan_data_source_read`.
    assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters
    assert reader.pushFilters([EqualTo(("value",), b"x")]) == [EqualTo(("value",), b"x")]

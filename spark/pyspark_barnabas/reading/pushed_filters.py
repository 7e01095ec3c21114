"""Filters on topic, partition, offset and timestamp that need not read what they would drop.

Spark pushes filters to a Python data source only with
`spark.sql.python.filterPushdown.enabled=true`. Those that ranges express exactly are done here; the
others only shorten the ranges, and Spark applies them too.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.reading.ranges import OffsetRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER_NULL = ("topic", "partition", "offset", "timestamp", "timestampType")
_END = 2**63 - 1
# The values of In, or the two bounds of a comparison.
_COMPARISONS = (
    "EqualTo",
    "EqualNullSafe",
    "GreaterThan",
    "GreaterThanOrEqual",
    "LessThan",
    "LessThanOrEqual",
)


@dataclass(frozen=True)
class PushedFilters:
    """Offsets in [first, end) of the partitions for which every filter in `choices` holds, and no
    offsets whose records are all older than `from_ms`."""

    first: int = 0
    end: int = _END
    from_ms: int | None = None
    choices: tuple[Any, ...] = field(default=())

    def chooses(self, tp: TopicPartition) -> bool:
        return all(_holds(chosen, tp) for chosen in self.choices)

    def shortened(self, planned: OffsetRange, first_in_time: int | None = None) -> OffsetRange:
        """Return the part of a range that the filters leave; it may be empty.

        `first_in_time`: the first offset with a record at `from_ms` or later.
        """
        start = max(planned.start, self.first, first_in_time or 0)
        return replace(planned, start=start, end=max(start, min(planned.end, self.end)))


def push(filters: Iterable[Any]) -> tuple[PushedFilters, list[Any]]:
    """Return what is pushed, and the filters that Spark must still apply."""
    pushed = PushedFilters()
    left = []
    for one in filters:
        pushed, done = _push(pushed, one)
        if not done:
            left.append(one)
    return pushed, left


def _push(pushed: PushedFilters, one: Any) -> tuple[PushedFilters, bool]:
    kind, column = _kind(one), _column(one)
    if kind == "IsNotNull":
        return pushed, column in _NEVER_NULL
    if column in ("topic", "partition") and _decidable(one):
        return replace(pushed, choices=(*pushed.choices, one)), True
    if column == "offset":
        return _push_offset(pushed, kind, one)
    if column == "timestamp" and kind in ("EqualTo", "GreaterThan", "GreaterThanOrEqual"):
        return _push_timestamp(pushed, one.value), False
    return pushed, False


def _push_offset(pushed: PushedFilters, kind: str, one: Any) -> tuple[PushedFilters, bool]:
    if kind == "In":
        if not one.value or not all(type(value) is int for value in one.value):
            return pushed, False
        return _between(pushed, min(one.value), max(one.value) + 1), False
    if kind not in _COMPARISONS or type(one.value) is not int:
        return pushed, False
    value = one.value
    first = {"GreaterThan": value + 1, "GreaterThanOrEqual": value}
    end = {"LessThan": value, "LessThanOrEqual": value + 1}
    if kind in first:
        return _between(pushed, first[kind], _END), True
    if kind in end:
        return _between(pushed, 0, end[kind]), True
    return _between(pushed, value, value + 1), True


def _between(pushed: PushedFilters, first: int, end: int) -> PushedFilters:
    return replace(pushed, first=max(pushed.first, first), end=min(pushed.end, end))


def _push_timestamp(pushed: PushedFilters, value: Any) -> PushedFilters:
    """Records before the first at that time or later are all older; after it some may be too."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return pushed
    time = (value - _EPOCH) // timedelta(milliseconds=1)
    if time < 0:
        return pushed
    return replace(pushed, from_ms=max(time, pushed.from_ms or 0))


def _kind(one: Any) -> str:
    return type(one).__name__


def _column(one: Any) -> str:
    attribute = one.child.attribute if _kind(one) == "Not" else one.attribute
    return attribute[0] if len(attribute) == 1 else ""


def _decidable(one: Any) -> bool:
    inner = one.child if _kind(one) == "Not" else one
    wanted = str if _column(one) == "topic" else int
    if _kind(inner) == "In":
        return all(type(value) is wanted for value in inner.value)
    return _kind(inner) in _COMPARISONS and type(inner.value) is wanted


def _holds(one: Any, tp: TopicPartition) -> bool:
    kind = _kind(one)
    if kind == "Not":
        return not _holds(one.child, tp)
    value: Any = tp.topic if _column(one) == "topic" else tp.partition
    if kind == "In":
        return value in one.value
    if kind in ("EqualTo", "EqualNullSafe"):
        return bool(value == one.value)
    # Spark compares strings by their bytes in UTF-8; topic names are ASCII.
    if kind.startswith("GreaterThan"):
        return bool(value > one.value or (kind.endswith("OrEqual") and value == one.value))
    return bool(value < one.value or (kind.endswith("OrEqual") and value == one.value))

"""Where a query starts and ends in each partition: its options, and the offsets seen at planning.

Plain functions on plain data. The end of a range is the high watermark seen at planning (with
`read_committed` the last stable offset), so that every attempt of a task, and every task of a
query, reads the same records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.options import EARLIEST, LATEST, ByPartition, Limit, OptionError
from pyspark_barnabas.reading.errors import report_data_loss
from pyspark_barnabas.reading.ranges import OffsetRange

# The first offset whose record has the timestamp or a later one; None if there is no such record.
OffsetsForTimes = Mapping[TopicPartition, int | None]


@dataclass(frozen=True)
class Bounds:
    """The first offset of a partition and the end of what may be read, as seen at planning."""

    earliest: int
    latest: int


def plan_ranges(
    bounds: Mapping[TopicPartition, Bounds],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, str],
) -> list[OffsetRange]:
    """Return one range for each partition that has records. Raises OptionError if one runs
    backwards."""
    ranges = []
    for tp in sorted(bounds):
        if starts[tp] > ends[tp]:
            raise OptionError(
                f"[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] {tp}: the starting offset"
                f" {starts[tp]} is above the end {ends[tp]}"
            )
        if starts[tp] < ends[tp]:
            topic_id = topic_ids.get(tp.topic, "")
            ranges.append(OffsetRange(tp.topic, tp.partition, starts[tp], ends[tp], topic_id))
    return ranges


def timestamps_of(limit: Limit, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the timestamps to look up; none if the limit is one of offsets."""
    if limit.timestamps is None:
        return {}
    if isinstance(limit.timestamps, int):
        return dict.fromkeys(partitions, limit.timestamps)
    given = _flat(limit.timestamps)
    _check_same(given, partitions, limit.option, "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED")
    return given


def resolve(
    limit: Limit, bounds: Mapping[TopicPartition, Bounds], times: OffsetsForTimes, fail: bool
) -> dict[TopicPartition, int]:
    """Return the offset of the limit in every partition, within the partition's bounds.

    Raises OptionError if the limit does not name exactly the partitions read, or has a timestamp
    without a record; DataLossError for offsets that do not exist, if `fail` is set.
    """
    if limit.timestamps is not None:
        return {tp: _at_time(limit, tp, bound, times[tp]) for tp, bound in bounds.items()}
    if isinstance(limit.offsets, int):
        return {
            tp: bound.earliest if limit.offsets == EARLIEST else bound.latest
            for tp, bound in bounds.items()
        }
    given = _flat(limit.offsets)
    _check_same(given, bounds, limit.option, "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED")
    return {tp: _within(limit.option, tp, offset, bounds[tp], fail) for tp, offset in given.items()}


def _at_time(limit: Limit, tp: TopicPartition, bound: Bounds, offset: int | None) -> int:
    if offset is not None:
        return min(max(offset, bound.earliest), bound.latest)
    if limit.latest_if_unmatched:
        return bound.latest
    assert limit.timestamps is not None
    whole = isinstance(limit.timestamps, int)
    time = limit.timestamps if whole else _flat(limit.timestamps)[tp]  # type: ignore[arg-type]
    raise OptionError(
        f"{limit.option}: no offset matched: {tp} has no record at {time} ms or later;"
        " with startingOffsetsByTimestampStrategy=latest such a partition starts at its end"
    )


def _within(option: str, tp: TopicPartition, offset: int, bound: Bounds, fail: bool) -> int:
    if offset == EARLIEST:
        return bound.earliest
    if offset == LATEST:
        return bound.latest
    nearest = min(max(offset, bound.earliest), bound.latest)
    if nearest != offset:
        reason = f"{tp}: {option} {offset} is outside [{bound.earliest}, {bound.latest}]"
        report_data_loss(fail, "START_OFFSET_RESET", reason)
    return nearest


def _check_same(
    given: Mapping[TopicPartition, int],
    partitions: Iterable[TopicPartition],
    option: str,
    condition: str,
) -> None:
    assigned = set(partitions)
    if given.keys() != assigned:
        missing = sorted(map(str, assigned - given.keys()))
        extra = sorted(map(str, given.keys() - assigned))
        raise OptionError(
            f"[{condition}] {option} must name every partition read: missing {missing},"
            f" unknown {extra}"
        )


def _flat(numbers: ByPartition) -> dict[TopicPartition, int]:
    return {
        TopicPartition(t, p): number for t, by_p in numbers.items() for p, number in by_p.items()
    }

"""The offsets that each Spark task reads: planned once, on the driver, from the offsets seen there.

Plain functions on plain data. The end of a range is the high watermark seen at planning, so that
every attempt of a task, and every task of a query, reads the same records.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from barnabas_common.topic_partition import TopicPartition
from pyspark.sql.datasource import InputPartition

from pyspark_barnabas.options import EARLIEST, LATEST, Offsets, OptionError


@dataclass
class OffsetRange(InputPartition):
    """One task's share of one partition: offsets in [start, end)."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


@dataclass(frozen=True)
class Bounds:
    """The first offset of a partition and its high watermark, as seen at planning."""

    earliest: int
    latest: int


class DataLossError(RuntimeError):
    """Requested records no longer exist, or do not exist yet."""


def plan_ranges(
    bounds: Mapping[TopicPartition, Bounds],
    starting: Offsets,
    ending: Offsets,
    fail_on_data_loss: bool,
    min_partitions: int = 0,
) -> list[OffsetRange]:
    """Return one range per partition, or more if `min_partitions` asks for more; no empty ones.

    Raises OptionError if the offsets given do not name exactly the partitions read or run
    backwards, DataLossError if they lie outside what exists and `fail_on_data_loss` is set.
    """
    starts = _resolve(bounds, starting, "startingOffsets", fail_on_data_loss)
    ends = _resolve(bounds, ending, "endingOffsets", fail_on_data_loss)
    ranges = []
    for tp in sorted(bounds):
        if starts[tp] > ends[tp]:
            raise OptionError(f"{tp}: starting offset {starts[tp]} is above the end {ends[tp]}")
        if starts[tp] < ends[tp]:
            ranges.append(OffsetRange(tp.topic, tp.partition, starts[tp], ends[tp]))
    return _split(ranges, min_partitions)


def _resolve(
    bounds: Mapping[TopicPartition, Bounds], offsets: Offsets, option: str, fail: bool
) -> dict[TopicPartition, int]:
    if isinstance(offsets, int):
        return {
            tp: bound.earliest if offsets == EARLIEST else bound.latest
            for tp, bound in bounds.items()
        }
    given = {TopicPartition(t, p): o for t, by_p in offsets.items() for p, o in by_p.items()}
    if given.keys() != bounds.keys():
        missing = sorted(map(str, bounds.keys() - given.keys()))
        extra = sorted(map(str, given.keys() - bounds.keys()))
        raise OptionError(
            f"{option} must name every partition read: missing {missing}, unknown {extra}"
        )
    return {tp: _clamp(tp, given[tp], bounds[tp], option, fail) for tp in given}


def _clamp(tp: TopicPartition, offset: int, bound: Bounds, option: str, fail: bool) -> int:
    if offset == EARLIEST:
        return bound.earliest
    if offset == LATEST:
        return bound.latest
    if bound.earliest <= offset <= bound.latest:
        return offset
    if fail:
        raise DataLossError(
            f"{tp}: {option} {offset} is outside [{bound.earliest}, {bound.latest}];"
            " set failOnDataLoss=false to read what exists"
        )
    return min(max(offset, bound.earliest), bound.latest)


def _split(ranges: list[OffsetRange], min_partitions: int) -> list[OffsetRange]:
    """Split large ranges, in proportion, until there are about `min_partitions`."""
    total = sum(r.end - r.start for r in ranges)
    if min_partitions <= len(ranges) or not total:
        return ranges
    pieces = []
    for whole in ranges:
        size = whole.end - whole.start
        parts = min(size, max(1, round(min_partitions * size / total)))
        cuts = [whole.start + size * i // parts for i in range(parts + 1)]
        pieces += [
            OffsetRange(whole.topic, whole.partition, start, end) for start, end in pairwise(cuts)
        ]
    return pieces

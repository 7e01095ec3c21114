"""Ranges of offsets, one for each task. Plain functions on plain data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from barnabas_common.topic_partition import TopicPartition
from pyspark.sql.datasource import InputPartition


@dataclass
class OffsetRange(InputPartition):
    """One task's share of one partition: offsets in [start, end).

    `topic_id` says which topic of that name was planned for; "" does not matter.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str = ""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return self.end - self.start


def split(
    ranges: Sequence[OffsetRange], min_partitions: int = 0, max_records: int | None = None
) -> list[OffsetRange]:
    """Split ranges into pieces of at most `max_records` offsets each, then large ones in
    proportion, until there are about `min_partitions`. Empty ranges are left out.
    """
    found = [r for r in ranges if r.size > 0]
    if max_records is not None:
        found = [piece for r in found for piece in _pieces(r, -(-r.size // max_records))]
    if min_partitions <= len(found):
        return found
    total = sum(r.size for r in found)
    if not total:
        return []
    # Small ranges stay whole; the others share the tasks that are left.
    large = [r for r in found if _parts(r.size, total, min_partitions) > 1]
    shared = sum(r.size for r in large)
    left = max(min_partitions - (len(found) - len(large)), 1)
    pieces = []
    for one in found:
        parts = _parts(one.size, shared, left) if one in large else 1
        pieces += _pieces(one, parts)
    return pieces


def _parts(size: int, total: int, wanted: int) -> int:
    return max(1, round(wanted * size / total))


def _pieces(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(parts, whole.size)
    cuts = [whole.start + whole.size * i // parts for i in range(parts + 1)]
    return [replace(whole, start=start, end=end) for start, end in pairwise(cuts)]

"""A batch: planned once on the driver, read by one task for each range."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyspark_barnabas.event_loop import run
from pyspark_barnabas.options import ReadOptions
from pyspark_barnabas.reading.bounds import plan_ranges
from pyspark_barnabas.reading.offset_reader import OffsetReader
from pyspark_barnabas.reading.pushed_filters import PushedFilters, push
from pyspark_barnabas.reading.range_reader import read_range
from pyspark_barnabas.reading.ranges import OffsetRange, split


class _PushFilters:
    """The reader's `pushFilters`, which Spark calls only if its configuration says so.

    With the default configuration Spark refuses a reader that overrides this method, so that no
    filter is overlooked. Here none can be: Spark applies every filter that it does not push. So the
    reader has the method, and looks to Spark as if it had only the inherited one.
    """

    if hasattr(DataSourceReader, "pushFilters"):  # since Spark 4.1
        __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: "BatchReader") -> None:
        self._reader = reader

    def __call__(self, filters: list[Any]) -> Iterable[Any]:
        return self._reader.take(filters)


class BatchReader(DataSourceReader):
    """Sent from the driver to the tasks, so it has only the options."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pushed = PushedFilters()
        self.pushFilters = _PushFilters(self)

    def take(self, filters: list[Any]) -> list[Any]:
        """Take the filters that shorten ranges; return those that Spark must still apply."""
        self._pushed, left = push(filters)
        return left

    def partitions(self) -> list[InputPartition]:
        """Return one range per partition that has records, up to the high watermarks seen now.

        Spark needs at least one partition: an empty topic is one empty range.
        """
        options = self._options
        ranges = split(
            run(self._planned()), options.min_partitions, options.max_records_per_partition
        )
        return list(ranges) or [OffsetRange("", 0, 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches of exactly the planned offsets, or raise."""
        assert isinstance(partition, OffsetRange)
        yield from read_range(self._options, partition)

    async def _planned(self) -> list[OffsetRange]:
        async with OffsetReader(self._options) as offsets:
            assigned = await offsets.assigned()
            bounds = await offsets.bounds(assigned.partitions)
            starts = await offsets.resolved(self._options.starting, bounds)
            ends = await offsets.resolved(self._options.ending, bounds)
            ranges = plan_ranges(bounds, starts, ends, assigned.topic_ids)
            return await self._filtered(offsets, ranges)

    async def _filtered(
        self, offsets: OffsetReader, ranges: list[OffsetRange]
    ) -> list[OffsetRange]:
        pushed = self._pushed
        chosen = {r.topic_partition: r for r in ranges if pushed.chooses(r.topic_partition)}
        if pushed.from_ms is None:
            return [pushed.shortened(planned) for planned in chosen.values()]
        in_time = await offsets.at_times(dict.fromkeys(chosen, pushed.from_ms))
        # Without such a record there was nothing to read when it was asked.
        return [
            pushed.shortened(planned, planned.end if in_time[tp] is None else in_time[tp])
            for tp, planned in chosen.items()
        ]

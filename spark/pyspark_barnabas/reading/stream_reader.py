"""A stream, as Spark asks for it. `StreamPlanner` decides; here are Spark's names and its JSON.

Spark makes one reader on the driver for the whole query, and another for each plan, which it sends
to the tasks: so there are no clients before the first question.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_barnabas.event_loop import run
from pyspark_barnabas.options import OptionError, ReadOptions
from pyspark_barnabas.reading.published_progress import PublishedProgress
from pyspark_barnabas.reading.range_reader import read_range
from pyspark_barnabas.reading.ranges import OffsetRange
from pyspark_barnabas.reading.stream_offsets import StreamOffsets
from pyspark_barnabas.reading.stream_planner import StreamPlanner

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before Spark 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass

    ReadAllAvailable = ReadMaxRows = ReadMinRows = None


class RefusedStream(DataSourceStreamReader):
    """Raises at its first call.

    If `streamReader` raised instead, Spark would still stop the reader that it asked for, and
    report only that there is none.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def initialOffset(self, *_: Any) -> NoReturn:
        raise self._error

    latestOffset = partitions = read = initialOffset
    getDefaultReadLimit = prepareForTriggerAvailableNow = initialOffset


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Sent from the driver to the tasks, where it has only the options."""

    def __init__(self, options: ReadOptions) -> None:
        """Raises OptionError if this version of Spark cannot do what the options ask for."""
        limited = options.max_offsets_per_trigger or options.min_offsets_per_trigger
        if limited and ReadMaxRows is None:
            raise OptionError("maxOffsetsPerTrigger and minOffsetsPerTrigger need PySpark 4.2")
        self._options = options
        self._made: tuple[StreamPlanner, PublishedProgress] | None = None

    @property
    def _planner(self) -> StreamPlanner:
        return self._clients()[0]

    def initialOffset(self) -> dict[str, Any]:
        return run(self._planner.initial()).to_json()

    def getDefaultReadLimit(self) -> "ReadLimit":
        """Tell Spark that there are limits; `latestOffset` knows which."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> dict[str, Any]:
        """Return where the next batch ends, up to the high watermarks (`read_committed`: the last
        stable offsets). Spark before 4.2 gives no `start`."""
        if start is None:
            return run(self._planner.newest_without_start()).to_json()
        began = StreamOffsets.from_json(start)
        # Spark asks for the next batch when all before `start` is done.
        run(self._publish(began))
        # With Trigger.Once Spark asks for everything, whatever the options say.
        unlimited = isinstance(limit, ReadAllAvailable)
        end = run(self._planner.latest(began, unlimited))
        # Spark takes equal text for "nothing new".
        return start if end is began else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        newest = self._planner.newest
        return None if newest is None else newest.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        run(self._planner.prepare_for_available_now())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        began, ends = StreamOffsets.from_json(start), StreamOffsets.from_json(end)
        return list(run(self._planner.plan(began, ends)))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches of exactly the planned offsets, or raise."""
        assert isinstance(partition, OffsetRange)
        yield from read_range(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Publish what has been processed. The checkpoint, not the group, says what that is."""
        run(self._publish(StreamOffsets.from_json(end)))

    def stop(self) -> None:
        if self._made is not None:
            for client in self._made:
                run(client.close())

    async def _publish(self, processed: StreamOffsets) -> None:
        planner, progress = self._clients()
        await progress.publish(planner.group_id(processed.group_id), processed.offsets)

    def _clients(self) -> tuple[StreamPlanner, PublishedProgress]:
        if self._made is None:
            self._made = StreamPlanner(self._options), PublishedProgress(self._options)
        return self._made

"""One task's work: read offsets [start, end) of one partition, all of them or fail.

Between planning and reading the leader may have changed: a new leader's high watermark may still
be below the planned end, or there may be no leader for a moment. The task waits while there is
hope (`pollTimeoutMs` without progress) and then fails; Spark runs it again.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from barnabas import Consumer
from barnabas.errors import OffsetOutOfRangeError
from barnabas.topic_partition import TopicPartition

from pyspark_barnabas.options import ReadOptions
from pyspark_barnabas.planning import DataLossError, OffsetRange

_POLL_MS = 500


def read_range(options: ReadOptions, planned: OffsetRange) -> Iterator[Any]:
    """Arrow batches; raises DataLossError when records of the range cannot be had."""
    if planned.start >= planned.end:
        return
    with asyncio.Runner() as runner:
        reader = _RangeReader(options, planned)
        runner.run(reader.open())
        try:
            while (table := runner.run(reader.next_table())) is not None:
                yield from table.to_batches()
        finally:
            runner.run(reader.close())


class _RangeReader:
    def __init__(self, options: ReadOptions, planned: OffsetRange) -> None:
        self._options = options
        self._planned = planned
        self._tp = TopicPartition(planned.topic, planned.partition)
        self._consumer: Consumer

    async def open(self) -> None:
        self._consumer = Consumer(
            bootstrap_servers=self._options.bootstrap_servers, auto_offset_reset="none"
        )
        await self._consumer.start()
        self._consumer.assign([self._tp])
        self._consumer.seek(self._tp, self._planned.start)

    async def close(self) -> None:
        await self._consumer.close()

    async def next_table(self) -> "pa.Table | None":
        """The next records of the range, None once its end is reached."""
        position = await self._consumer.position(self._tp)
        last_fault = "the high watermark is still below the planned end"
        waited_ms = 0
        while position < self._planned.end:
            try:
                table = await self._consumer.poll_arrow(timeout_ms=_POLL_MS)
            except OffsetOutOfRangeError as error:
                position = await self._skip_if_deleted(position)
                last_fault = str(error)
                waited_ms += await self._pause()
                table = None
            else:
                moved = await self._consumer.position(self._tp)
                waited_ms = 0 if moved > position else waited_ms + _POLL_MS
                position = moved
            if table is not None and table.num_rows:
                return self._cut(table)
            if waited_ms >= self._options.poll_timeout_ms:
                raise DataLossError(
                    f"{self._planned}: no progress beyond offset {position} within"
                    f" {self._options.poll_timeout_ms} ms: {last_fault}"
                )
        return None

    async def _pause(self) -> int:
        """A new leader may still be catching up with what was committed; then seek again."""
        await asyncio.sleep(_POLL_MS / 1000)
        self._consumer.seek(self._tp, await self._consumer.position(self._tp))
        return _POLL_MS

    async def _skip_if_deleted(self, position: int) -> int:
        """Retention may have deleted the planned records: fail, or skip what is gone."""
        earliest = (await self._consumer.beginning_offsets([self._tp]))[self._tp]
        if earliest <= position:
            return position
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{self._planned}: records before offset {earliest} were deleted meanwhile;"
                " set failOnDataLoss=false to read what is left"
            )
        self._consumer.seek(self._tp, min(earliest, self._planned.end))
        return min(earliest, self._planned.end)

    def _cut(self, table: "pa.Table") -> "pa.Table":
        """Nothing at or above the planned end; timestamps in Spark's own unit."""
        table = table.filter(pc.less(table["offset"], self._planned.end))
        index = table.schema.get_field_index("timestamp")
        micros = table["timestamp"].cast(pa.timestamp("us", tz="UTC"))
        return table.set_column(index, pa.field("timestamp", micros.type), micros)

"""One task's work: to read all offsets in [start, end) of one partition, or to fail.

Runs in Spark's Python workers. Between planning and reading the leader may have changed: a new
leader's high watermark may still be below the planned end, or there may be no leader for a moment.
The task waits up to `kafkaConsumer.pollTimeoutMs` without progress and then fails; Spark runs it
again. The topic may have been deleted and created again: its id is compared before the reading and
after it.
"""

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from barnabas import Consumer
from barnabas.consumer import LogTruncationError
from barnabas_common.errors import (
    BarnabasError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.runtime import Runtime

from pyspark_barnabas.event_loop import run
from pyspark_barnabas.options import ReadOptions
from pyspark_barnabas.reading.columns import in_spark_types
from pyspark_barnabas.reading.errors import data_loss, report_data_loss
from pyspark_barnabas.reading.ranges import OffsetRange
from pyspark_barnabas.reading.topic_identity import has_id
from pyspark_barnabas.worker_process import keep_freed_memory, settle

logger = logging.getLogger(__name__)

_POLL_MS = 500
_END_SECONDS = 5.0
# A task reads one partition, so it can afford larger responses than a consumer of many. For a short
# range, most of such a response would be fetched and decoded in vain. The assumed record size is
# small: if records are larger, a few more requests cost less than records that are not needed.
_MOST_FETCH_BYTES = 4 * 1024 * 1024
_LEAST_FETCH_BYTES = 256 * 1024
_BYTES_PER_OFFSET = 128


def read_range(options: ReadOptions, planned: OffsetRange) -> Iterator[Any]:
    """Yield Arrow batches of all records in the planned range.

    Raises DataLossError if records of the range cannot be read.
    """
    if planned.start >= planned.end:
        return
    keep_freed_memory()
    reader = RangeReader(options, planned)
    run(reader.open())
    try:
        while (table := run(reader.next_table())) is not None:
            yield from table.to_batches()
    finally:
        run(reader.close())
        settle()


def fetch_bytes(offsets: int) -> int:
    """The `max_partition_fetch_bytes` for a range of so many offsets."""
    return min(max(offsets * _BYTES_PER_OFFSET, _LEAST_FETCH_BYTES), _MOST_FETCH_BYTES)


class RangeReader:
    """Reads one range; `runtime` replaces clock and network (tests)."""

    def __init__(
        self, options: ReadOptions, planned: OffsetRange, runtime: Runtime | None = None
    ) -> None:
        self._options = options
        self._planned = planned
        self._tp = planned.topic_partition
        self._fault = ""
        self._gone = False
        defaults = {
            "max_partition_fetch_bytes": fetch_bytes(planned.size),
            "default_api_timeout_ms": max(options.poll_timeout_ms, 1),
        }
        self._consumer = Consumer(
            bootstrap_servers=options.bootstrap_servers,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            runtime=runtime,
            **(defaults | dict(options.consumer)),
        )

    async def open(self) -> None:
        """Find the cluster and the topic. Raises NoBrokerReachableError within seconds if no broker
        answers, and DataLossError if the topic is another than the planned one."""
        await self._consumer.start()
        try:
            if reason := await self._topic_fault():
                self._note_gone(reason)
            self._consumer.assign([self._tp])
            self._consumer.seek(self._tp, self._planned.start)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await self._consumer.close()

    async def next_table(self) -> "pa.Table | None":
        """Return the next records of the range; None once its end is reached.

        Raises DataLossError if planned records are gone, or nothing moves for the poll timeout.
        """
        if self._gone:
            return None
        position = await self._position()
        deadline = self._deadline()
        while position < self._planned.end and not self._gone:
            table = await self._poll(position)
            if table is not None and table.num_rows:
                return self._cut(table)
            # Without a row there may still be progress: control batches, or compacted records.
            moved = await self._position()
            if moved > position:
                position, deadline = moved, self._deadline()
            elif time.monotonic() >= deadline:
                await self._give_up(position)
                break
        if not self._gone and (reason := await self._topic_fault()):
            # What was returned may be of another topic: that cannot be taken back.
            raise data_loss("PARTITIONS_DELETED", f"{self._planned}: {reason}")
        return None

    async def _topic_fault(self) -> str:
        """Return "" if the topic is the one that was planned for, or what has become of it."""
        return await has_id(self._consumer, self._tp.topic, self._planned.topic_id)

    def _note_gone(self, reason: str) -> None:
        reason = f"{self._planned}: {reason}"
        report_data_loss(self._options.fail_on_data_loss, "PARTITIONS_DELETED", reason)
        self._gone = True

    async def _position(self) -> int:
        try:
            return await self._consumer.position(self._tp)
        except UnknownTopicOrPartitionError as error:
            self._note_gone(str(error))
            return self._planned.end

    async def _poll(self, position: int) -> "pa.Table | None":
        headers = self._options.include_headers
        try:
            table = await self._consumer.poll_arrow(timeout_ms=_POLL_MS, headers=headers)
        except LogTruncationError as error:
            # Records that this task has already returned are no longer in the log: it must fail.
            raise data_loss("PARTITION_OFFSET_CHANGED", f"{self._planned}: {error}") from error
        except UnknownTopicOrPartitionError as error:
            self._note_gone(str(error))
            return None
        except OffsetOutOfRangeError as error:
            self._fault = str(error)
            await self._place_again(position)
            return None
        self._fault = ""
        return table

    async def _place_again(self, position: int) -> None:
        try:
            await self._pass_deleted(position)
            # The high watermark of a new leader may be lower for a moment.
            await asyncio.sleep(_POLL_MS / 1000)
            self._consumer.seek(self._tp, await self._consumer.position(self._tp))
        except UnknownTopicOrPartitionError as error:
            self._note_gone(str(error))

    async def _pass_deleted(self, position: int) -> None:
        """Retention may have deleted planned records: fail, or skip them."""
        earliest = (await self._consumer.beginning_offsets([self._tp]))[self._tp]
        if earliest <= position:
            return
        report_data_loss(
            self._options.fail_on_data_loss,
            "COULD_NOT_READ_OFFSET_RANGE",
            f"{self._planned}: records before offset {earliest} were deleted",
        )
        self._consumer.seek(self._tp, min(earliest, self._planned.end))

    async def _give_up(self, position: int) -> None:
        """Raise, unless the rest of the range is lost and the query is to go on without it."""
        condition = "COULD_NOT_READ_OFFSET_RANGE"
        reason = (
            f"{self._planned}: no progress beyond offset {position} within"
            f" {self._options.poll_timeout_ms} ms: {self._fault or self._silence()}"
        )
        if not await self._ends_before():
            raise data_loss(condition, reason)
        report_data_loss(self._options.fail_on_data_loss, condition, reason)

    async def _ends_before(self) -> bool:
        """Whether the log ends below the planned end, although that was the end once.

        A new leader whose high watermark lags does not say where its log ends (KIP-207).
        """
        if self._consumer.high_watermark(self._tp) >= self._planned.end:
            return False  # records are not committed yet
        try:
            async with asyncio.timeout(_END_SECONDS):
                end = (await self._consumer.end_offsets([self._tp]))[self._tp]
        except (BarnabasError, TimeoutError):
            return False
        return end < self._planned.end

    def _cut(self, table: "pa.Table") -> "pa.Table":
        """Return the rows below the planned end, in Spark's types. Offsets rise within a table."""
        if table["offset"][-1].as_py() >= self._planned.end:
            below = pc.sum(pc.less(table["offset"], self._planned.end)).as_py()
            table = table.slice(0, below)
        return in_spark_types(table, str(self._tp))

    def _silence(self) -> str:
        """Why there may be no records although no broker reports an error."""
        high_watermark = self._consumer.high_watermark(self._tp)
        if high_watermark < 0:
            return "no leader has answered"
        if high_watermark < self._planned.end:
            return f"the leader's high watermark, {high_watermark}, is below the planned end"
        return "the leader no longer answers"

    def _deadline(self) -> float:
        return time.monotonic() + self._options.poll_timeout_ms / 1000

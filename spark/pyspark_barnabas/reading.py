"""One task's work: to read all offsets in [start, end) of one partition, or to fail.

Called by `BatchReader.read` in Spark's Python workers. Between planning and reading the leader may
have changed: a new leader's high watermark may still be below the planned end, or there may be no
leader for a moment. The task waits up to `pollTimeoutMs` without progress and then fails; Spark
runs it again.
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
from barnabas_common.errors import OffsetOutOfRangeError
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.event_loop import run
from pyspark_barnabas.options import ReadOptions
from pyspark_barnabas.planning import DataLossError, OffsetRange

# Exactly Spark's form of the source's schema; it refuses anything else.
ARROW_SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
    }
)

logger = logging.getLogger(__name__)

# Spark's years are 1 to 9999. A day at each end is left out, so that Python can convert the
# timestamps to every local time.
_FIRST_MS = -62_135_510_400_000
_LAST_MS = 253_402_214_400_000
_POLL_MS = 500
# A task reads one partition, so it can afford larger answers than a consumer of many.
_FETCH_BYTES = 4 * 1024 * 1024


def read_range(options: ReadOptions, planned: OffsetRange) -> Iterator[Any]:
    """Yield Arrow batches of all records in the planned range.

    Raises DataLossError if records of the range cannot be read.
    """
    if planned.start >= planned.end:
        return
    reader = RangeReader(options, planned)
    run(reader.open())
    try:
        while (table := run(reader.next_table())) is not None:
            yield from table.to_batches()
    finally:
        run(reader.close())


def within_spark(times: Any) -> Any:
    """Timestamps (ms), with the nearest that Spark can represent in place of the others."""
    return pc.min_element_wise(pc.max_element_wise(times, _FIRST_MS), _LAST_MS)


class RangeReader:
    """Reads one range; `runtime` replaces clock and network (tests)."""

    def __init__(
        self, options: ReadOptions, planned: OffsetRange, runtime: Runtime | None = None
    ) -> None:
        self._options = options
        self._planned = planned
        self._tp = TopicPartition(planned.topic, planned.partition)
        self._fault = ""
        self._consumer = Consumer(
            bootstrap_servers=options.bootstrap_servers,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            max_partition_fetch_bytes=_FETCH_BYTES,
            runtime=runtime,
            default_api_timeout_ms=max(options.poll_timeout_ms, 1),
            isolation_level=options.isolation_level,
        )

    async def open(self) -> None:
        """Find the cluster. Raises NoBrokerReachableError within seconds if no broker answers."""
        await self._consumer.start()
        self._consumer.assign([self._tp])
        self._consumer.seek(self._tp, self._planned.start)

    async def close(self) -> None:
        await self._consumer.close()

    async def next_table(self) -> "pa.Table | None":
        """Return the next records of the range; None once its end is reached.

        Raises DataLossError if planned records are gone, or nothing moves for `pollTimeoutMs`.
        """
        position = await self._consumer.position(self._tp)
        deadline = self._deadline()
        while position < self._planned.end:
            table = await self._poll(position)
            if table is not None and table.num_rows:
                return self._cut(table)
            # Without a row there may still be progress: control batches, or compacted records.
            moved = await self._consumer.position(self._tp)
            if moved > position:
                position, deadline = moved, self._deadline()
            elif time.monotonic() >= deadline:
                raise DataLossError(
                    f"{self._planned}: no progress beyond offset {position} within"
                    f" {self._options.poll_timeout_ms} ms: {self._fault or self._silence()}"
                )
        return None

    async def _poll(self, position: int) -> "pa.Table | None":
        try:
            table = await self._consumer.poll_arrow(timeout_ms=_POLL_MS)
        except LogTruncationError as error:
            # Records that this task has already returned are no longer in the log: it must fail.
            raise DataLossError(f"{self._planned}: {error}") from error
        except OffsetOutOfRangeError as error:
            self._fault = str(error)
            await self._pass_deleted(position)
            # The high watermark of a new leader may be lower for a moment.
            await asyncio.sleep(_POLL_MS / 1000)
            self._consumer.seek(self._tp, await self._consumer.position(self._tp))
            return None
        self._fault = ""
        return table

    async def _pass_deleted(self, position: int) -> None:
        """Retention may have deleted planned records: fail, or skip them."""
        earliest = (await self._consumer.beginning_offsets([self._tp]))[self._tp]
        if earliest <= position:
            return
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{self._planned}: records before offset {earliest} were deleted;"
                " set failOnDataLoss=false to read what remains"
            )
        self._consumer.seek(self._tp, min(earliest, self._planned.end))

    def _cut(self, table: "pa.Table") -> "pa.Table":
        """Return the rows below the planned end, in Spark's types. Offsets rise within a table."""
        if table["offset"][-1].as_py() >= self._planned.end:
            below = pc.sum(pc.less(table["offset"], self._planned.end)).as_py()
            table = table.slice(0, below)
        return self._with_spark_times(table).cast(ARROW_SCHEMA)

    def _with_spark_times(self, table: "pa.Table") -> "pa.Table":
        """Replace timestamps that Spark cannot represent: one of them would fail every read of its
        range. Kafka's source fails; neither a producer nor a broker refuses such a timestamp."""
        times = table["timestamp"].cast(pa.int64())
        within = within_spark(times)
        changed = table.filter(pc.not_equal(times, within))["offset"]
        if not len(changed):
            return table
        logger.warning(
            "%s: %d timestamps outside the years 1 to 9999 are cut off, the first at offset %d",
            self._tp, len(changed), changed[0].as_py(),
        )  # fmt: skip
        column = table.schema.get_field_index("timestamp")
        field = table.schema.field(column)
        return table.set_column(column, field, within.cast(field.type))

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

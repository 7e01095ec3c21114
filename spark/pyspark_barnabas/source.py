"""The data source itself: `spark.read.format("barnabas")`.

Spark 4 finds it without registration: a module whose name begins with `pyspark_` and a class named
`DefaultSource`. The driver plans (`partitions`), each task reads one range (`read`).
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from barnabas import Consumer
from barnabas_common.topic_partition import TopicPartition
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from pyspark_barnabas.event_loop import run
from pyspark_barnabas.options import OptionError, ReadOptions, parse_options
from pyspark_barnabas.planning import Bounds, OffsetRange, plan_ranges
from pyspark_barnabas.reading import ARROW_SCHEMA, read_range
from pyspark_barnabas.writing.writers import batch_writer, stream_writer

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long,"
    " timestamp timestamp, timestampType int"
)

_NO_STREAMS = (
    "the barnabas format reads topics as batches only; use spark.read, with startingOffsets from"
    " where the last batch ended"
)


class NotOffered(NotImplementedError):
    """Spark asked for something that this data source does not do."""


class DefaultSource(DataSource):
    """Topics as batches; the schema is that of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> str:
        """Return Spark's schema string. `load()` calls this, so that it reports a bad option."""
        parse_options(self.options)
        return SCHEMA

    def reader(self, schema: StructType) -> "BatchReader":
        if schema.fieldNames() != ARROW_SCHEMA.names:
            raise OptionError("the schema of a topic is fixed: leave out schema()")
        return BatchReader(parse_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return batch_writer(self.options, schema, overwrite)

    def streamReader(self, schema: StructType) -> "NoStreamReader":
        return NoStreamReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        writer: DataSourceStreamWriter = stream_writer(self.options, schema, overwrite)
        return writer


class NoStreamReader(DataSourceStreamReader):
    """Refuses at its first call.

    If `streamReader` raised instead, Spark would still stop the reader that it asked for, and
    report only that there is none.
    """

    def initialOffset(self, *_: Any) -> NoReturn:
        raise NotOffered(_NO_STREAMS)

    latestOffset = partitions = read = initialOffset


class BatchReader(DataSourceReader):
    """Sent from the driver to the tasks, so it has only the options."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return one range per partition that has records, up to the high watermarks seen now.

        Spark needs at least one partition: an empty topic is one empty range.
        """
        bounds = run(_bounds(self._options))
        ranges = plan_ranges(
            bounds,
            self._options.starting_offsets,
            self._options.ending_offsets,
            self._options.fail_on_data_loss,
            self._options.min_partitions,
        )
        return list(ranges) or [OffsetRange("", 0, 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches of exactly the planned offsets, or raise."""
        assert isinstance(partition, OffsetRange)
        yield from read_range(self._options, partition)


async def _bounds(options: ReadOptions) -> dict[TopicPartition, Bounds]:
    """Return where every partition to be read starts, and where it ends for this reader."""
    async with Consumer(
        bootstrap_servers=options.bootstrap_servers,
        allow_auto_create_topics=False,
        default_api_timeout_ms=max(options.poll_timeout_ms, 1),
        isolation_level=options.isolation_level,
    ) as consumer:
        partitions: list[TopicPartition] = []
        for topic, wanted in options.topics.items():
            partitions += _chosen(topic, await consumer.partitions_for(topic), wanted)
        earliest = await consumer.beginning_offsets(partitions)
        latest = await consumer.end_offsets(partitions)
    return {tp: Bounds(earliest[tp], latest[tp]) for tp in partitions}


def _chosen(
    topic: str, existing: list[TopicPartition], wanted: list[int] | None
) -> list[TopicPartition]:
    if wanted is None:
        return existing
    chosen = [TopicPartition(topic, partition) for partition in wanted]
    for tp in chosen:
        if tp not in existing:
            raise OptionError(f"assign: {topic} has no partition {tp.partition}")
    return chosen

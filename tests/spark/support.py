"""Helpers of the Spark tests to produce records and to read them."""

import asyncio
import time
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import Consumer, Producer, TopicPartition
from pyspark_barnabas.options import parse_options
from pyspark_barnabas.reading import BatchReader, StreamReader

PARTITIONS = 3
# It must be recent, or retention would delete the records during the test.
FIRST_MS = time.time_ns() // 1_000_000


class Stored(NamedTuple):
    """One record as Spark must return it."""

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int


async def produce(
    bootstrap: str, topic: str, count: int, start: int = 0, partitions: int = PARTITIONS
) -> list[Stored]:
    """Produce `count` records round-robin with acks=all; some lack a key, some a value."""
    stored = []
    async with Producer(bootstrap, acks="all") as producer:
        handles = []
        for number in range(start, start + count):
            key = None if number % 5 == 0 else b"key-%d" % number
            value = None if number % 7 == 0 else b"value-%d" % number
            when = FIRST_MS + number
            handle = await producer.send(
                topic, value, key, partition=number % partitions, timestamp_ms=when
            )
            handles.append((key, value, handle))
        for key, value, handle in handles:
            at = await handle
            stored.append(Stored(key, value, topic, at.partition, at.offset, at.timestamp, 0))
    return sorted(stored, key=lambda record: (record.partition, record.offset))


def load(spark: Any, bootstrap: str, topic: str, **options: str) -> Any:
    return (
        spark.read.format("barnabas")
        .option("bootstrap.servers", bootstrap)
        .options(**{"subscribe": topic} | options)
        .load()
    )


def collect(frame: Any) -> list[Stored]:
    """Return the rows in order; SQL converts the timestamp, so that no time zone interferes."""
    rows = frame.selectExpr(
        "key", "value", "topic", "partition", "offset", "unix_millis(timestamp)", "timestampType"
    ).collect()
    found = [
        Stored(_bytes(row[0]), _bytes(row[1]), row[2], row[3], row[4], row[5], row[6])
        for row in rows
    ]
    return sorted(found, key=lambda record: (record.partition, record.offset))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def batch_reader(bootstrap: str, topic: str, **options: str) -> BatchReader:
    """Return a reader as Spark creates it, for tests that act between planning and reading."""
    given = {"bootstrap.servers": bootstrap, "subscribe": topic} | options
    return BatchReader(parse_options(given))


def read_all(reader: BatchReader, planned: list[Any]) -> list[tuple[int, int, bytes | None]]:
    """Return (partition, offset, value) of every record of the planned ranges."""
    rows: list[tuple[int, int, bytes | None]] = []
    for partition in planned:
        read_into(rows, reader, partition)
    return rows


def read_into(rows: list[tuple[int, int, bytes | None]], reader: BatchReader, planned: Any) -> None:
    """Append the records of one planned range, batch by batch as they are read."""
    for batch in reader.read(planned):
        rows += zip(
            batch["partition"].to_pylist(),
            batch["offset"].to_pylist(),
            batch["value"].to_pylist(),
            strict=True,
        )


def stream_reader(bootstrap: str, topic: str, **options: str) -> StreamReader:
    """Return a reader as Spark creates it for a stream."""
    given = {"bootstrap.servers": bootstrap, "subscribe": topic} | options
    return StreamReader(parse_options(given, "stream"))


def stream(spark: Any, bootstrap: str, topic: str, **options: str) -> Any:
    return (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .options(**{"subscribe": topic, "startingOffsets": "earliest"} | options)
        .load()
    )


class Kept:
    """What a query has written: (partition, offset) of each record, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[int, int]]] = []

    def __call__(self, batch: Any, _: int) -> None:
        rows = batch.select("partition", "offset").collect()
        self.batches.append(sorted((row[0], row[1]) for row in rows))

    @property
    def all(self) -> list[tuple[int, int]]:
        return sorted(place for batch in self.batches for place in batch)

    def query(self, frame: Any, checkpoint: Path) -> Any:
        """Return a query, not started yet, that keeps what the frame has."""
        return frame.writeStream.foreachBatch(self).option("checkpointLocation", str(checkpoint))


def read_what_there_is(frame: Any, checkpoint: Path) -> Kept:
    """Run a query with Trigger.AvailableNow to its end; raises what it failed with."""
    kept = Kept()
    query = kept.query(frame, checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return kept


def places(stored: list[Stored]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in stored)


async def until_stable(bootstrap: str, partition: TopicPartition, offset: int) -> None:
    """Wait for the markers: the coordinator answers when its decision is durable, before them."""
    async with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        while (await consumer.end_offsets([partition]))[partition] < offset:
            await asyncio.sleep(0.05)

"""Measurements of a running Barnabas, through its public client only."""

import time

from barnabas import Admin, Consumer, Producer
from barnabas_common.record.builder import BatchBuilder

PARTITIONS = 6
MEGABYTE = 1_000_000


async def create_topic(bootstrap: str, topic: str) -> None:
    """Create a topic as in Kafka's runs: replication factor 3, min.insync.replicas 2."""
    async with Admin(bootstrap) as admin:
        configs = {"min.insync.replicas": "2"}
        await admin.create_topic(topic, PARTITIONS, 3, configs=configs)


async def send(
    bootstrap: str, topic: str, *, records: int, size: int, batch_size: int, linger_ms: int
) -> float:
    """Return records/s of `await producer.send(...)`, until all replicas have acknowledged."""
    value = b"x" * size
    async with Producer(
        bootstrap, acks="all", batch_size=batch_size, linger_ms=linger_ms
    ) as producer:
        await producer.partitions_for(topic)
        began = time.perf_counter()
        for _ in range(records):
            last = await producer.send(topic, value)
        await producer.flush()
        took = time.perf_counter() - began
        last.result()
        _check_all_delivered(producer, records)
    return records / took


async def send_prebuilt(
    bootstrap: str, topic: str, *, megabytes: int, size: int, batch_size: int
) -> float:
    """Return MB/s of prebuilt batches, acknowledged by all replicas."""
    batch, count = prebuilt_batch(size, batch_size)
    batches = megabytes * MEGABYTE // len(batch)
    async with Producer(bootstrap, acks="all") as producer:
        await producer.partitions_for(topic)
        began = time.perf_counter()
        for number in range(batches):
            last = await producer.send_batch(topic, number % PARTITIONS, batch)
        await producer.flush()
        took = time.perf_counter() - began
        last.result()
        _check_all_delivered(producer, batches * count)
    return batches * len(batch) / took / MEGABYTE


def prebuilt_batch(size: int, batch_size: int) -> tuple[bytes, int]:
    """Return a batch of at most `batch_size` bytes, and its number of records."""
    builder = BatchBuilder(max_size=batch_size)
    while builder.append(time.time_ns() // 1_000_000, None, b"x" * size):
        pass
    return builder.build(), builder.count


async def consume(bootstrap: str, topic: str, records: int) -> float:
    """Return records/s of `poll`, each an object with key, value, offset, timestamp."""
    async with Consumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        began = time.perf_counter()
        count = 0
        while count < records:
            count += len(await consumer.poll(timeout_ms=10_000, max_records=10_000))
        return count / (time.perf_counter() - began)


async def consume_arrow(bootstrap: str, topic: str, records: int) -> float:
    """Return rows/s of `poll_arrow`: columns, without an object per record."""
    async with Consumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        began = time.perf_counter()
        count = 0
        while count < records:
            count += (await consumer.poll_arrow(timeout_ms=10_000)).num_rows
        return count / (time.perf_counter() - began)


async def latencies(
    bootstrap: str, topic: str, *, records: int, size: int
) -> tuple[list[float], list[float]]:
    """Return the ms until one record is acknowledged, and until it is consumed."""
    value = b"x" * size
    acked: list[float] = []
    consumed: list[float] = []
    async with (
        Producer(bootstrap, acks="all", linger_ms=0) as producer,
        Consumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="latest") as consumer,
    ):
        for _ in range(records):
            began = time.perf_counter()
            await producer.send_and_wait(topic, value)
            acked.append((time.perf_counter() - began) * 1000)
            if not await consumer.poll(timeout_ms=10_000):
                raise RuntimeError("a record that was acknowledged cannot be consumed")
            consumed.append((time.perf_counter() - began) * 1000)
    return acked, consumed


def _check_all_delivered(producer: Producer, records: int) -> None:
    delivered = producer.metrics().records_acked
    if delivered != records:
        raise RuntimeError(f"only {delivered} of {records} records were acknowledged")

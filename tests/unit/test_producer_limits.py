"""Limits and mistakes of a caller are found immediately, and the error names them."""

import asyncio
import gc
import os
from typing import Any

import pytest
from barnabas import Producer
from barnabas.producer import ProducerConfig
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.buffer_pool import BufferPool
from barnabas_common.errors import (
    BufferExhaustedError,
    ClientError,
    ClosedError,
    CorruptMessageError,
    InvalidArgumentError,
    MessageTooLargeError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.record.builder import BatchBuilder

from tests.support.scripted_brokers import ScriptedBrokers


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"acks": 2}, "acks"),
        ({"acks": True}, "acks"),
        ({"batch_size": -1}, "batch_size"),
        ({"linger_ms": "5"}, "linger_ms"),
        ({"linger_ms": 1.5}, "linger_ms"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"compression_type": "zip"}, "compression_type"),
        ({"partitioner": "random"}, "partitioner"),
        ({"buffer_memory": 10}, "buffer_memory"),
        ({"retries": -1}, "retries"),
        ({"client_id": 5}, "client_id"),
        ({"enable_idempotence": 1}, "enable_idempotence"),
        ({"enable_idempotence": True, "acks": 1}, 'needs acks="all", not 1'),
        ({"enable_idempotence": True, "retries": 0}, "needs retries above 0"),
        ({"enable_idempotence": True, "max_in_flight": 6}, "needs max_in_flight of at most 5"),
        ({"delivery_timeout_ms": 1000}, "delivery_timeout_ms"),
        ({"linger": 5}, "did you mean 'linger_ms'"),
    ],
)
def test_bad_option_is_named(options: Any, named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=named):
        Producer("localhost:9092", **options)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost",
        "localhost:port",
        ":9092",
        [],
        "h:99999",
        "h:²",
        "h:" + "9" * 5000,
        "\udcff:1",
    ],
)
def test_bad_bootstrap_address_is_refused(address: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="bootstrap_servers"):
        Producer(address or [])


@pytest.mark.parametrize(
    ("options", "idempotent"),
    [
        ({}, True),
        ({"acks": "all", "max_in_flight": 1}, True),
        ({"acks": 1}, False),
        ({"acks": 0}, False),
        ({"retries": 0}, False),
        ({"max_in_flight": 6}, False),
        ({"enable_idempotence": False}, False),
        ({"enable_idempotence": False, "acks": 1}, False),
    ],
)
def test_a_producer_is_idempotent_unless_an_option_excludes_it(
    options: Any, idempotent: bool
) -> None:
    assert ProducerConfig.of(options).enable_idempotence is idempotent


def test_delivery_timeout_follows_a_longer_request_timeout() -> None:
    Producer(request_timeout_ms=200_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": "text"}, "value must be bytes"),
        ({"value": b"v", "key": "text"}, "key must be bytes"),
        ({"value": b"v", "key": bytearray(b"k")}, "key must be bytes"),
        ({"value": 5}, "value must be bytes"),
        ({"value": b"v", "timestamp_ms": "now"}, "timestamp_ms"),
        ({"value": b"v", "timestamp_ms": -5}, "negative"),
        ({"value": b"v", "timestamp_ms": 1.5}, "timestamp_ms must be an int"),
        ({"value": b"v", "headers": [("a", "text")]}, "headers are pairs"),
        ({"value": b"v", "headers": {"a": b"b"}}, "headers are pairs"),
        ({"value": b"v", "headers": 5}, "headers are pairs"),
        ({"value": b"v", "headers": [("\ud800", b"b")]}, "cannot be encoded"),
        ({"value": b"v", "partition": "0"}, "partition must be an int"),
        ({"value": b"v", "partition": 0.5}, "partition must be an int"),
    ],
)
async def test_bad_record_is_refused_and_the_next_is_sent(
    arguments: dict[str, Any], message: str
) -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime) as producer,
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            await producer.send("flights", **arguments)
        assert (await producer.send_and_wait("flights", b"good")).offset == 0
        before = producer.metrics().buffer_available_bytes
        assert before == 33_554_432


async def test_record_over_max_request_size_is_refused_at_send() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, max_request_size=1000) as producer,
    ):
        with pytest.raises(MessageTooLargeError, match="max_request_size"):
            await producer.send("flights", b"x" * 1000)
        await producer.send_and_wait("flights", b"x" * 900)


async def test_unknown_topic_is_told_within_seconds() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime) as producer,
    ):
        async with asyncio.timeout(4):
            with pytest.raises(UnknownTopicOrPartitionError, match="nowhere"):
                await producer.send("nowhere", b"v")
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 7"):
            await producer.send("flights", b"v", partition=7)


async def test_full_buffer_makes_send_wait_for_the_brokers() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(
            brokers.bootstrap, runtime=brokers.runtime, buffer_memory=20_000, batch_size=1_000
        ) as producer,
    ):
        handles = [await producer.send("flights", b"x" * 100) for _ in range(2_000)]
        assert producer.metrics().buffer_available_bytes >= 0
        await producer.flush()
        assert [handle.result().offset for handle in handles] == list(range(2_000))
        assert producer.metrics().buffer_available_bytes == 20_000


async def test_buffer_that_stays_full_raises_after_max_block_ms() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.log().leader = -1
        async with Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            buffer_memory=5_000,
            batch_size=1_000,
            max_block_ms=50,
            retry_backoff_ms=5,
        ) as producer:
            with pytest.raises(BufferExhaustedError, match="buffer_memory"):
                for _ in range(1_000):
                    await producer.send("flights", b"x" * 100)
            brokers.elect(0, leader=1)


async def test_returned_memory_serves_all_who_wait_in_order_as_far_as_it_goes() -> None:
    pool = BufferPool(100)
    await pool.allocate(100, timeout=1)
    waiting = [asyncio.create_task(pool.allocate(size, timeout=2)) for size in (40, 30, 50, 20)]
    await asyncio.sleep(0)
    pool.deallocate(100)
    await asyncio.gather(*waiting[:2])
    assert [task.done() for task in waiting] == [True, True, False, False]
    pool.deallocate(70)
    await asyncio.gather(*waiting)
    assert pool.available == 30


async def test_who_stops_waiting_for_much_memory_lets_those_behind_have_what_is_free() -> None:
    pool = BufferPool(100)
    await pool.allocate(60, timeout=1)
    large = asyncio.create_task(pool.allocate(80, timeout=2))
    small = asyncio.create_task(pool.allocate(30, timeout=2))
    await asyncio.sleep(0)
    assert not small.done(), "it does not overtake"
    large.cancel()
    await small
    assert pool.available == 10


async def test_who_is_given_memory_and_leaves_at_the_same_moment_gives_it_back() -> None:
    pool = BufferPool(100)
    await pool.allocate(100, timeout=1)
    leaving, behind = (asyncio.create_task(pool.allocate(60, timeout=2)) for _ in range(2))
    await asyncio.sleep(0)
    pool.deallocate(100)
    leaving.cancel()
    await behind
    assert leaving.cancelled() and pool.available == 40


async def test_full_buffer_does_not_wait_for_linger() -> None:
    async with (
        ScriptedBrokers(partitions=4) as brokers,
        Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            buffer_memory=5_000,
            batch_size=1_000,
            linger_ms=60_000,
        ) as producer,
    ):
        async with asyncio.timeout(5):
            for i in range(200):
                await producer.send("flights", b"x" * 100, partition=i % 4)


@pytest.mark.parametrize("damage", ["crc", "cut", "magic", "empty"])
async def test_damaged_prebuilt_batch_is_refused_at_once(damage: str) -> None:
    builder = BatchBuilder()
    builder.append(5, None, b"value")
    batch = bytearray(builder.build())
    if damage == "crc":
        batch[-1] ^= 1
    elif damage == "magic":
        batch[16] = 1
    payload = {"cut": bytes(batch[:-1]), "empty": b""}.get(damage, bytes(batch))
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime) as producer,
    ):
        with pytest.raises(CorruptMessageError):
            await producer.send_batch("flights", 0, payload)


@pytest.mark.parametrize("prebuilt", [True, False])
async def test_what_waits_for_memory_when_the_producer_is_closed_is_refused(prebuilt: bool) -> None:
    builder = BatchBuilder()
    builder.append(5, None, b"x" * 3_000)
    async with ScriptedBrokers() as brokers:
        brokers.log().leader = -1
        producer = Producer(
            brokers.bootstrap, runtime=brokers.runtime, buffer_memory=5_000, batch_size=1_000
        )
        await producer.send("flights", b"x" * 3_000)
        late = asyncio.create_task(
            producer.send_batch("flights", 0, builder.build())
            if prebuilt
            else producer.send("flights", b"x" * 3_000)
        )
        while not producer._accumulator.pool.contended:
            await asyncio.sleep(0)
        await producer.close(timeout_ms=20)
        with pytest.raises(ClosedError, match="closed while a record waited"):
            await late
        assert producer.metrics().buffer_available_bytes == 5_000
        assert producer.undelivered == 0


def test_use_from_another_event_loop_says_so() -> None:
    async def open_one() -> Producer:
        brokers = ScriptedBrokers()
        await brokers.__aenter__()
        producer = Producer(brokers.bootstrap, runtime=brokers.runtime)
        await producer.send_and_wait("flights", b"v")
        return producer

    producer = asyncio.run(open_one())

    async def misuse() -> None:
        await producer.send("flights", b"v")

    with pytest.raises(ClientError, match="another event loop"):
        asyncio.run(misuse())


async def test_use_after_fork_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer()
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(ClientError, match="forked"):
        await producer.send("flights", b"v")


async def test_close_while_it_starts_leaves_nothing_running() -> None:
    async with ScriptedBrokers() as brokers:
        before = asyncio.all_tasks()
        producer = Producer(brokers.bootstrap, runtime=brokers.runtime)
        starting = asyncio.create_task(producer.start())
        while not hasattr(producer, "_cluster"):
            await asyncio.sleep(0)
        await producer.close()
        with pytest.raises(ClosedError, match="while it started"):
            await starting
        left = {task.get_name() for task in asyncio.all_tasks() - before}
        assert not {name for name in left if name.startswith(("cluster", "producer"))}


async def test_a_cancelled_task_leaves_nothing_of_its_producer_running() -> None:
    async with ScriptedBrokers() as brokers:
        before = asyncio.all_tasks()
        sending = asyncio.Event()

        async def work() -> None:
            async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
                await producer.send_and_wait("flights", b"v")
                sending.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await sending.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left = {task.get_name() for task in asyncio.all_tasks() - before}
        assert not {name for name in left if name.startswith(("cluster", "producer", "channel"))}


async def test_dropped_producer_with_undelivered_records_warns() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.log().leader = -1
        producer = Producer(brokers.bootstrap, runtime=brokers.runtime)
        await producer.send("flights", b"v")
        with pytest.warns(ResourceWarning, match="1 records not delivered"):
            producer.__del__()
        await producer.close(timeout_ms=1)


async def test_a_request_of_many_batches_is_no_larger_than_one_may_be() -> None:
    """It was refused on its way, and so was each retry of the same batches, until their timeout."""
    count, size = 20, 4_000_000
    release = asyncio.Event()

    async def hold(broker_id: int, request: Any) -> None:
        await release.wait()

    async with (
        ScriptedBrokers(brokers=1) as brokers,
        Producer(
            brokers.bootstrap, runtime=brokers.runtime,
            max_request_size=100_000_000, buffer_memory=200_000_000,
        ) as producer,
        asyncio.timeout(30),
    ):  # fmt: skip
        await producer.send_and_wait("flights", b"first")
        brokers.faults.append(hold)
        for _ in range(count):
            await producer.send("flights", bytes(size))
        release.set()
        await producer.flush()
        assert brokers.log().end == 1 + count


async def test_a_delivered_batch_takes_no_memory_until_its_linger_time_is_over() -> None:
    """At 50 MB/s a linger time of a minute held 3 GB, whatever `buffer_memory` was."""
    async with (
        ScriptedBrokers() as brokers,
        Producer(
            brokers.bootstrap, runtime=brokers.runtime, linger_ms=60_000, batch_size=1_000
        ) as producer,
    ):
        before = _batches_in_memory()
        for _ in range(50):
            await producer.send("flights", b"x" * 900, partition=0)
        await producer.flush()
        assert _batches_in_memory() == before


def _batches_in_memory() -> int:
    gc.collect()
    return sum(isinstance(found, ProducerBatch) for found in gc.get_objects())


async def test_a_prebuilt_batch_that_never_fits_into_the_buffer_is_refused_at_once() -> None:
    """It waited for `max_block_ms`, and all others behind it."""
    builder = BatchBuilder()
    builder.append(0, None, bytes(200_000), [])
    async with (
        ScriptedBrokers() as brokers,
        Producer(
            brokers.bootstrap, runtime=brokers.runtime, buffer_memory=100_000, max_block_ms=500
        ) as producer,
    ):
        with pytest.raises(MessageTooLargeError, match=r"buffer_memory \(100000\)"):
            await producer.send_batch("flights", 0, builder.build())

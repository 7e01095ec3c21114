"""Reading: every record once and in order from the position on, across changes of leader."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from barnabas import Consumer, Producer
from barnabas_common.errors import (
    ClientError,
    ClosedError,
    CorruptMessageError,
    InvalidArgumentError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.runtime import SystemClock
from barnabas_common.topic_partition import TopicPartition

from tests.support.scripted_brokers import ScriptedBrokers, refuse

TP = TopicPartition("flights", 0)
EARLIEST: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
}


def write(
    brokers: ScriptedBrokers, first: int, count: int, partition: int = 0, per_batch: int = 10
) -> None:
    for start in range(first, first + count, per_batch):
        builder = BatchBuilder()
        for i in range(start, min(start + per_batch, first + count)):
            builder.append(1_000 + i, b"k%d" % i, b"%d" % i, [("h", b"%d" % i)])
        brokers.log(partition).append(builder.build())
    brokers.changed()


def consumer_of(brokers: ScriptedBrokers, *topics: str, **options: Any) -> Consumer:
    return Consumer(
        *topics, bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime,
        **{**EARLIEST, **options},
    )  # fmt: skip


async def read(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []
    async with asyncio.timeout(5):
        while len(records) < count:
            records += await consumer.poll()
    return records


async def test_every_partition_is_read_whole_and_in_order() -> None:
    async with ScriptedBrokers(partitions=5) as brokers:
        for partition in range(5):
            write(brokers, 0, 100, partition)
        async with consumer_of(brokers, "flights") as consumer:
            assert consumer.assignment() == [TopicPartition("flights", p) for p in range(5)]
            records = await read(consumer, 500)
        for partition in range(5):
            of_it = [r for r in records if r.partition == partition]
            assert [r.offset for r in of_it] == list(range(100))
            assert of_it[7][2:] == (7, 1_007, 0, b"k7", b"7", [("h", b"7")], 1)


async def test_a_time_limit_that_is_no_number_is_refused() -> None:
    async with ScriptedBrokers() as brokers, consumer_of(brokers, "flights") as consumer:
        with pytest.raises(InvalidArgumentError, match="timeout_ms must be a number of ms"):
            await consumer.poll(timeout_ms="100")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="timeout_ms must be a number of ms"):
            await consumer.poll_arrow(timeout_ms="100")  # type: ignore[arg-type]


async def test_poll_returns_at_most_max_records_and_moves_the_position() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 25)
        async with consumer_of(brokers, "flights") as consumer:
            assert [r.offset for r in await consumer.poll(max_records=7)] == list(range(7))
            assert await consumer.position(TP) == 7
            assert [r.offset for r in await read(consumer, 18)] == list(range(7, 25))
            assert await consumer.position(TP) == 25
            assert await consumer.lag(TP) == 0
            assert await consumer.poll(timeout_ms=10) == []


async def test_poll_waits_for_records_and_can_be_cancelled() -> None:
    async with ScriptedBrokers() as brokers, consumer_of(brokers, "flights") as consumer:
        waiting = asyncio.create_task(consumer.poll())
        await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        waiting = asyncio.create_task(consumer.poll())
        await asyncio.sleep(0.02)
        write(brokers, 0, 1)
        assert [r.value for r in await asyncio.wait_for(waiting, 10)] == [b"0"]


async def test_iteration_keeps_the_position_record_by_record() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 30)
        async with consumer_of(brokers, "flights") as consumer:
            async for record in consumer:
                assert await consumer.position(TP) == record.offset + 1
                if record.offset == 12:
                    break
            assert (await consumer.poll(max_records=1))[0].offset == 13
            consumer.seek(TP, 3)
            async for record in consumer:
                assert record.offset == 3
                break


async def test_iteration_ends_when_the_consumer_is_closed() -> None:
    async with ScriptedBrokers() as brokers:
        consumer = await consumer_of(brokers, "flights").start()

        read: list[Any] = []
        has_all = asyncio.Event()

        async def iterate() -> None:
            async for record in consumer:
                read.append(record)
                if len(read) == 3:
                    has_all.set()

        reading = asyncio.create_task(iterate())
        write(brokers, 0, 3)
        await asyncio.wait_for(has_all.wait(), 10)
        await consumer.close()
        await asyncio.wait_for(reading, 10)
        assert len(read) == 3
        with pytest.raises(ClosedError):
            await consumer.poll()


async def test_leader_change_is_followed_silently() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers, "flights") as consumer:
            await read(consumer, 10)
            brokers.elect(0, leader=2)
            write(brokers, 10, 10)
            assert [r.offset for r in await read(consumer, 10)] == list(range(10, 20))


async def test_dead_leader_is_followed_to_the_next() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers, "flights") as consumer:
            await read(consumer, 10)
            brokers.kill(1)
            await asyncio.sleep(0.03)
            brokers.elect(0, leader=3)
            write(brokers, 10, 5)
            assert [r.offset for r in await read(consumer, 5)] == list(range(10, 15))


async def test_next_fetch_is_in_flight_while_the_application_works() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 1_000, per_batch=50)
        async with consumer_of(brokers, "flights", max_partition_fetch_bytes=2_000) as consumer:
            await consumer.poll(max_records=1)
            await asyncio.sleep(0.05)
            assert len(brokers.fetched) >= 2
            # Memory is bounded: while the application does not poll, nothing more is fetched.
            fetched = len([r for r in brokers.fetched if r.partitions])
            await asyncio.sleep(0.1)
            assert len(brokers.fetched) == fetched
            assert len(await read(consumer, 999)) == 999


async def test_small_fetches_return_whole_batches_without_gaps() -> None:
    async with ScriptedBrokers(partitions=3, brokers=1) as brokers:
        for partition in range(3):
            write(brokers, 0, 200, partition, per_batch=7)
        async with consumer_of(
            brokers, "flights", max_partition_fetch_bytes=1, max_poll_records=3
        ) as consumer:
            records = await read(consumer, 600)
        for partition in range(3):
            assert [r.offset for r in records if r.partition == partition] == list(range(200))


async def test_damaged_batch_raises_after_the_good_ones_and_can_be_passed() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 30)
        log = brokers.log()
        log.data[len(log.data) // 2] ^= 1  # within the second batch
        async with consumer_of(brokers, "flights") as consumer:
            assert [r.offset for r in await read(consumer, 10)] == list(range(10))
            for _ in range(2):
                with pytest.raises(CorruptMessageError, match="flights-0 is damaged at offset 10"):
                    await consumer.poll()
            consumer.seek(TP, 20)
            assert [r.offset for r in await read(consumer, 10)] == list(range(20, 30))


async def test_a_table_has_the_good_batches_and_the_next_one_raises() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 30)
        log = brokers.log()
        log.data[len(log.data) // 2] ^= 1
        async with consumer_of(brokers, "flights") as consumer:
            table = await consumer.poll_arrow()
            assert table["offset"].to_pylist() == list(range(10))
            assert await consumer.position(TP) == 10
            for _ in range(2):
                with pytest.raises(CorruptMessageError, match="flights-0 is damaged at offset 10"):
                    await consumer.poll_arrow()
            consumer.seek(TP, 20)
            assert (await consumer.poll_arrow())["offset"].to_pylist() == list(range(20, 30))


async def test_check_crcs_can_be_turned_off() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 1)
        brokers.log().data[-1] ^= 1  # in a header's value
        async with consumer_of(brokers, "flights", check_crcs=False) as consumer:
            assert len(await read(consumer, 1)) == 1


async def test_refusal_that_cannot_be_cured_is_raised_by_poll() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.fetch_faults.append(refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        async with consumer_of(brokers, "flights") as consumer:
            with pytest.raises(TopicAuthorizationFailedError, match="flights-0"):
                await consumer.poll()
            write(brokers, 0, 1)
            assert len(await read(consumer, 1)) == 1


async def test_passing_trouble_is_not_shown() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 5)
        brokers.fetch_faults += [
            refuse(ErrorCode.KAFKA_STORAGE_ERROR),
            refuse(ErrorCode.UNKNOWN_LEADER_EPOCH),
            refuse(ErrorCode.OFFSET_NOT_AVAILABLE),
        ]
        async with consumer_of(brokers, "flights") as consumer:
            assert len(await read(consumer, 5)) == 5


async def test_arrow_hands_the_same_records_as_columns() -> None:
    pytest.importorskip("pyarrow")
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 25)
        async with consumer_of(brokers, "flights") as consumer:
            consumer.seek(TP, 5)
            table = await consumer.poll_arrow(timeout_ms=1_000)
            assert table.column_names == [
                "key", "value", "topic", "partition", "offset", "timestamp", "timestampType",
            ]  # fmt: skip
            assert table["offset"].to_pylist() == list(range(5, 25))
            assert table["value"].to_pylist() == [b"%d" % i for i in range(5, 25)]
            assert await consumer.position(TP) == 25
            assert (await consumer.poll_arrow(timeout_ms=10)).num_rows == 0


async def test_arrow_has_headers_when_asked_for() -> None:
    pytest.importorskip("pyarrow")
    builder = BatchBuilder()
    builder.append(1000, None, b"with", [("trace", b"\x01"), ("trace", None)])
    builder.append(1001, None, b"without")
    async with ScriptedBrokers() as brokers:
        brokers.log().append(builder.build())
        async with consumer_of(brokers, "flights") as consumer:
            consumer.seek(TP, 0)
            table = await consumer.poll_arrow(timeout_ms=1_000, headers=True)
    pairs = [{"key": "trace", "value": b"\x01"}, {"key": "trace", "value": None}]
    assert table["headers"].to_pylist() == [pairs, None]


@pytest.mark.usefixtures("short_grace")
async def test_topics_are_listed_with_their_ids_and_missing_ones_left_out() -> None:
    async with ScriptedBrokers() as brokers, consumer_of(brokers) as consumer:
        found = await consumer.list_topics(["flights", "no-such-topic"])
        assert list(found) == ["flights"]
        assert found["flights"].partition_count == len(await consumer.partitions_for("flights"))


@pytest.mark.usefixtures("short_grace")
async def test_mistakes_are_told() -> None:
    with pytest.raises(InvalidArgumentError, match="auto_offset_reset"):
        Consumer("flights", auto_offset_reset="first")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="did you mean 'fetch_min_bytes'"):
        Consumer("flights", fetch_minimum_bytes=1)  # type: ignore[call-arg]
    async with ScriptedBrokers() as brokers:
        with pytest.raises(UnknownTopicOrPartitionError, match="nowhere"):
            await consumer_of(brokers, "nowhere").start()
        async with consumer_of(brokers) as consumer:
            with pytest.raises(ClientError, match="nothing to read"):
                await consumer.poll()
            with pytest.raises(InvalidArgumentError, match="not assigned"):
                consumer.seek(TP, 0)
            consumer.assign([TopicPartition("flights", 9)])
            with pytest.raises(UnknownTopicOrPartitionError, match="no partition 9"):
                await consumer.poll()


async def test_a_deleted_topic_is_reported_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.consumer.offset_fetcher._DELETED_AFTER_SECONDS", 0.3)
    async with ScriptedBrokers(partitions=3) as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers, "flights", metadata_max_age_ms=10) as consumer:
            await read(consumer, 10)
            brokers.topic = "another"
            errors = 0
            loop = asyncio.get_running_loop()
            end = loop.time() + 1.0
            while loop.time() < end:
                try:
                    await consumer.poll(timeout_ms=100)
                except UnknownTopicOrPartitionError as error:
                    assert "no longer exists" in str(error)
                    errors += 1
            assert 1 <= errors <= 5


class ClockAhead(SystemClock):
    """The system's clock, and `ahead` seconds that a test adds."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


async def test_a_topic_that_is_unknown_for_a_moment_now_and_then_is_no_deleted_one() -> None:
    clock = ClockAhead()
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        runtime = replace(brokers.runtime, clock=clock)
        options = {**EARLIEST, "metadata_max_age_ms": 10}
        async with Consumer("flights", bootstrap_servers=brokers.bootstrap, runtime=runtime,
                            **options) as consumer:  # fmt: skip
            await read(consumer, 10)

            def is_unknown() -> bool:
                return "flights" in consumer._cluster.metadata.errors

            for _ in range(3):
                brokers.topic = "another"
                while not is_unknown():
                    await consumer.poll(timeout_ms=5)
                await consumer.poll(timeout_ms=20)
                brokers.topic = "flights"
                while is_unknown():
                    await consumer.poll(timeout_ms=5)
                clock.ahead += 8.0
            write(brokers, 10, 1)
            assert len(await read(consumer, 1)) == 1


async def test_a_partition_that_does_not_exist_is_reported_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.consumer.offset_fetcher._DELETED_AFTER_SECONDS", 0.3)
    monkeypatch.setattr("barnabas.cluster.cluster.UNKNOWN_TOPIC_GRACE", 0.0)
    missing = TopicPartition("flights", 9)
    async with ScriptedBrokers(partitions=3) as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers) as consumer:
            consumer.assign([TP, missing])
            errors, found = 0, 0
            loop = asyncio.get_running_loop()
            end = loop.time() + 1.0
            while loop.time() < end:
                try:
                    found += len(await consumer.poll(timeout_ms=100))
                except UnknownTopicOrPartitionError as error:
                    assert "no partition 9" in str(error)
                    errors += 1
            assert found == 10
            assert 2 <= errors <= 6
            for _ in range(2):
                with pytest.raises(UnknownTopicOrPartitionError, match="no partition 9"):
                    await consumer.position(missing)


@pytest.mark.parametrize("topic", ["", "flights\ud800"])
async def test_what_is_no_topic_name_is_refused_at_once(topic: str) -> None:
    with pytest.raises(InvalidArgumentError, match="topic"):
        Consumer(topic)
    with pytest.raises(InvalidArgumentError, match="topic"):
        Consumer().assign([(topic, 0)])
    async with ScriptedBrokers() as brokers, consumer_of(brokers) as consumer:
        async with asyncio.timeout(1.0):
            with pytest.raises(InvalidArgumentError, match="topic"):
                await consumer.partitions_for(topic)
            producer = Producer(brokers.bootstrap, runtime=brokers.runtime)
            with pytest.raises(InvalidArgumentError, match="topic"):
                await producer.send(topic, b"v")
            await producer.close()


@pytest.mark.parametrize("arrow", [False, True])
async def test_polls_that_do_not_wait_let_the_fetches_run(arrow: bool) -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers, "flights") as consumer, asyncio.timeout(5):
            count = 0
            while not count:
                if arrow:
                    count = (await consumer.poll_arrow(timeout_ms=0)).num_rows
                else:
                    count = len(await consumer.poll(timeout_ms=0))
            assert count == 10


async def test_an_iteration_ends_when_the_consumer_is_closed() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 100)
        consumer = consumer_of(brokers, "flights")
        seen = []
        async for record in consumer:
            seen.append(record.offset)
            if len(seen) == 10:
                await consumer.close()
        assert seen == list(range(10))


@pytest.mark.parametrize("option", ["fetch_max_wait_ms", "fetch_min_bytes"])
async def test_fetches_that_do_not_wait_are_not_sent_without_a_pause(option: str) -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers, "flights", **{option: 0}) as consumer:
            await read(consumer, 10)
            fetches = len(brokers.fetched)
            await asyncio.sleep(0.2)
            assert 1 <= len(brokers.fetched) - fetches <= 25, "one each 10 ms"
            write(brokers, 10, 10)
            await read(consumer, 10)

"""What a handle promises: the order and the outcome of every record, whatever brokers do."""

import asyncio
import re
from typing import Any

import pytest
from barnabas import Producer
from barnabas.producer import DeliveryHandle, RecordMetadata
from barnabas_common.errors import (
    BarnabasError,
    ClosedError,
    DeliveryTimeoutError,
    InvalidRecordError,
    MessageTooLargeError,
    NotEnoughReplicasError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode

from tests.support.scripted_brokers import ScriptedBrokers, refuse

FAST: dict[str, Any] = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}


def values(brokers: ScriptedBrokers, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in brokers.log(partition).records()]


async def test_records_are_stored_in_order_and_handles_tell_their_offsets() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            sent = [await producer.send("flights", b"%d" % i, timestamp_ms=i) for i in range(1000)]
            answers = [await handle for handle in sent]
        assert answers == [RecordMetadata("flights", 0, i, i) for i in range(1000)]
        assert values(brokers) == [b"%d" % i for i in range(1000)]


async def test_key_headers_and_timestamp_travel_with_the_value() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            await producer.send_and_wait(
                "flights", b"v", b"k", timestamp_ms=77, headers=[("a", b"1"), ("b", None)]
            )
            await producer.send_and_wait("flights", None, b"tombstone")
        first, second = brokers.log().records()
        assert (first.key, first.value, first.timestamp) == (b"k", b"v", 77)
        assert first.headers == [("a", b"1"), ("b", None)]
        assert (second.key, second.value) == (b"tombstone", None)


async def test_headers_that_can_be_read_only_once_travel_too() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            once: Any = ((name, b"1") for name in "ab")
            await producer.send_and_wait("flights", b"v", headers=once)
        assert brokers.log().records()[0].headers == [("a", b"1"), ("b", b"1")]


@pytest.mark.parametrize("partitioner", ["sticky", "round-robin"])
async def test_a_topic_created_again_with_fewer_partitions_gets_records_in_those(
    partitioner: Any,
) -> None:
    async with (
        ScriptedBrokers(partitions=6) as brokers,
        Producer(
            brokers.bootstrap, runtime=brokers.runtime, partitioner=partitioner,
            metadata_max_age_ms=10,
        ) as producer,
    ):  # fmt: skip
        await producer.send_and_wait("flights", b"old")
        brokers.create_again(partitions=2)
        async with asyncio.timeout(10):
            while await producer.partitions_for("flights") != 2:
                await asyncio.sleep(0.01)
            keyed = [await producer.send("flights", b"v", key=b"%d" % i) for i in range(20)]
            free = [await producer.send("flights", b"v") for _ in range(20)]
            assert {(await handle).partition for handle in keyed} == {0, 1}
            assert {(await handle).partition for handle in free} <= {0, 1}
        with pytest.raises(UnknownTopicOrPartitionError, match="it has 2 from 0 on"):
            await producer.send("flights", b"v", partition=2)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_codec_arrives(codec: Any) -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, compression_type=codec
        ) as producer:
            for i in range(50):
                await producer.send("flights", b"value %d" % i)
        assert values(brokers) == [b"value %d" % i for i in range(50)]


async def test_leader_change_is_followed_without_the_caller_noticing() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            await producer.send_and_wait("flights", b"before")
            asked = brokers.metadata_requests
            brokers.elect(0, leader=2)
            answer = await producer.send_and_wait("flights", b"after")
            assert answer.offset == 1
            # The refusal named the new leader; no round trip was needed to find it.
            assert brokers.metadata_requests <= asked + 1
        assert values(brokers) == [b"before", b"after"]


async def test_order_is_kept_through_retries() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.faults += [refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 3
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, batch_size=200, **FAST
        ) as producer:
            for i in range(300):
                await producer.send("flights", b"%d" % i)
                if i % 50 == 0:
                    await asyncio.sleep(0.002)
            await producer.flush()
            assert producer.metrics().batches_retried >= 3
        assert values(brokers) == [b"%d" % i for i in range(300)]


async def test_dead_broker_is_retried_until_another_leads() -> None:
    async with ScriptedBrokers(brokers=3) as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            await producer.send_and_wait("flights", b"0")
            brokers.kill(1)
            handles = [await producer.send("flights", b"%d" % i) for i in range(1, 20)]
            await asyncio.sleep(0.05)
            assert not any(handle.done() for handle in handles)
            brokers.elect(0, leader=3)
            assert [(await handle).offset for handle in handles] == list(range(1, 20))
        assert values(brokers) == [b"%d" % i for i in range(20)]


async def test_without_idempotence_a_lost_answer_duplicates_but_does_not_reorder() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.faults.append(brokers.append_and_fall_silent)
        async with Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            request_timeout_ms=100,
            enable_idempotence=False,
            **FAST,
        ) as producer:
            for i in range(3):
                await producer.send("flights", b"%d" % i)
            await producer.flush()
        assert values(brokers) == [b"0", b"1", b"2"] * 2


async def test_used_up_time_fails_every_handle_and_the_rest_goes_on() -> None:
    async with (
        ScriptedBrokers(partitions=2) as brokers,
        Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            request_timeout_ms=500,
            delivery_timeout_ms=2_000,  # far above what a loaded machine takes for the good ones
            **FAST,
        ) as producer,
    ):
        await producer.send_and_wait("flights", b"warm", partition=1)
        brokers.log(0).leader = -1
        brokers.log(0).epoch += 1
        lost = [await producer.send("flights", b"lost", partition=0) for _ in range(5)]
        good = [await producer.send("flights", b"good", partition=1) for _ in range(5)]
        assert [(await handle).offset for handle in good] == [1, 2, 3, 4, 5]
        for handle in lost:
            with pytest.raises(DeliveryTimeoutError, match="flights-0: not delivered after"):
                await handle
        metrics = producer.metrics()
        assert (metrics.records_failed, metrics.records_acked) == (5, 6)


async def test_used_up_retries_name_the_last_cause() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.faults += [refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 3
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, retries=2, **FAST
        ) as producer:
            handle = await producer.send("flights", b"v")
            with pytest.raises(DeliveryTimeoutError, match="3 attempts.*NOT_ENOUGH_REPLICAS") as e:
                await handle
            assert isinstance(e.value.__cause__, NotEnoughReplicasError)
            assert len(brokers.produced) == 3
            await producer.send_and_wait("flights", b"goes on")


async def test_after_a_delivery_the_pauses_between_retries_begin_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "barnabas.producer")
    async with (
        ScriptedBrokers() as brokers,
        Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            retry_backoff_ms=10,
            retry_backoff_max_ms=1_000,
        ) as producer,
    ):
        for refusals in (4, 1):
            brokers.faults += [refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * refusals
            await producer.send_and_wait("flights", b"v")
    pauses = [float(found[1]) for found in re.finditer(r"again in ([0-9.]+) s", caplog.text)]
    assert len(pauses) == 5 and pauses[3] > 0.06 and pauses[4] < 0.013


async def test_hopeless_error_is_not_retried() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.faults.append(refuse(ErrorCode.INVALID_RECORD))
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            with pytest.raises(InvalidRecordError):
                await producer.send_and_wait("flights", b"v")
            assert len(brokers.produced) == 1


async def test_error_of_an_expired_batch_does_not_fail_another_of_its_request() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, batch_size=100) as producer,
    ):
        both_wait = asyncio.Event()

        async def hold(broker_id: int, request: Any) -> Any:
            await both_wait.wait()

        async def expire_the_first_and_refuse(broker_id: int, request: Any) -> Any:
            batches = list(producer._accumulator.incomplete)
            assert [batch.attempts for batch in batches] == [1, 1]
            producer._sender.completion.give_up(batches[0], DeliveryTimeoutError("too old"))
            return await refuse(ErrorCode.INVALID_RECORD)(broker_id, request)

        brokers.faults += [hold, expire_the_first_and_refuse]
        handles = [await producer.send("flights", value * 90) for value in (b"a", b"b", b"c")]
        both_wait.set()
        with pytest.raises(DeliveryTimeoutError, match="too old"):
            await handles[1]
        assert (await handles[2]).offset == 1
        assert values(brokers) == [b"a" * 90, b"c" * 90]


async def test_batch_too_large_for_the_broker_is_halved_until_it_fits() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.log().max_batch = 400
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            free = producer.metrics().buffer_available_bytes
            handles = [await producer.send("flights", b"%03d" % i * 20) for i in range(40)]
            huge = await producer.send("flights", b"x" * 1000)
            assert [(await handle).offset for handle in handles] == list(range(40))
            with pytest.raises(MessageTooLargeError):
                await huge
            assert producer.metrics().batches_split > 0
            assert (await producer.send_and_wait("flights", b"small")).offset == 40
            assert producer.metrics().buffer_available_bytes == free
        assert values(brokers)[:40] == [b"%03d" % i * 20 for i in range(40)]


async def test_callbacks_see_delivery_and_failure_in_order() -> None:
    seen: list[Any] = []

    def note(metadata: RecordMetadata | None, error: Exception | None) -> None:
        seen.append(metadata.offset if metadata else type(error))

    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime) as producer,
    ):
        for _ in range(3):
            await producer.send("flights", b"v", on_delivery=note)
        await producer.flush()
        brokers.faults.append(refuse(ErrorCode.INVALID_RECORD))
        await producer.send("flights", b"v", on_delivery=note)
    assert seen == [0, 1, 2, InvalidRecordError]


async def test_acks_0_completes_without_offset() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, acks=0) as producer:
            assert (await producer.send_and_wait("flights", b"v")).offset == -1
            await asyncio.sleep(0.05)
        assert values(brokers) == [b"v"]


async def test_partition_has_one_request_in_flight_and_others_overtake_it() -> None:
    async with ScriptedBrokers(partitions=4, brokers=1) as brokers:
        release = asyncio.Event()

        async def hold(broker_id: int, request: Any) -> Any:
            await release.wait()

        brokers.faults.append(hold)
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            held = await producer.send("flights", b"held", partition=0)
            await asyncio.sleep(0.02)
            behind = await producer.send("flights", b"behind", partition=0)
            await asyncio.wait_for(producer.send_and_wait("flights", b"other", partition=1), 10)
            assert not held.done() and not behind.done()
            assert sum(p.partition == 0 for _, r in brokers.produced for p in r.partitions) == 1
            release.set()
            assert [(await held).offset, (await behind).offset] == [0, 1]


async def test_the_partitions_of_a_request_share_its_largest_size() -> None:
    limit, count = 4_000, 8
    async with ScriptedBrokers(partitions=count, brokers=1) as brokers:
        async with Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            max_request_size=limit,
            max_in_flight=1,
            linger_ms=60_000,
        ) as producer:
            for partition in range(count):
                await producer.send("flights", b"x" * 1_500, partition=partition)
            await producer.flush()
        sizes = [sum(len(p.records) for p in r.partitions) for _, r in brokers.produced]
        assert len(values(brokers, count - 1)) == 1 and max(sizes) <= limit
        assert len(sizes) == count / 2


async def test_several_waiters_of_one_batch_survive_the_cancelling_of_one() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.log().leader = -1
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            handle = await producer.send("flights", b"v")

            async def wait() -> RecordMetadata:
                return await handle

            first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
            await asyncio.sleep(0.01)
            first.cancel()
            brokers.elect(0, leader=1)
            assert (await second).offset == 0


async def test_close_delivers_what_was_sent() -> None:
    async with ScriptedBrokers() as brokers:
        producer = Producer(brokers.bootstrap, runtime=brokers.runtime, linger_ms=60_000)
        handles = [await producer.send("flights", b"%d" % i) for i in range(10)]
        await producer.close()
        assert [handle.result().offset for handle in handles] == list(range(10))
        with pytest.raises(ClosedError):
            await producer.send("flights", b"late")


async def test_close_in_time_says_how_many_records_it_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ScriptedBrokers() as brokers:
        brokers.log().leader = -1
        producer = Producer(brokers.bootstrap, runtime=brokers.runtime)
        handles = [await producer.send("flights", b"v") for _ in range(7)]
        await producer.close(timeout_ms=50)
        assert "closed with 7 records not delivered" in caplog.text
        with pytest.raises(ClosedError):
            await handles[0]


async def test_linger_gathers_records_into_one_batch() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, linger_ms=50) as producer,
    ):
        for i in range(10):
            handle = await producer.send("flights", b"%d" % i)
            await asyncio.sleep(0.001)
        await handle
        assert producer.metrics().batches_sent == 1


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_callback_may_end_the_program_and_no_flush_waits_forever(
    error: type[BaseException],
) -> None:
    handles: list[DeliveryHandle] = []
    called: list[int] = []

    def end(metadata: RecordMetadata | None, failure: BarnabasError | None) -> None:
        assert metadata is not None
        called.append(metadata.offset)
        raise error(7)

    async def program() -> None:
        async with (
            ScriptedBrokers() as brokers,
            Producer(brokers.bootstrap, runtime=brokers.runtime, linger_ms=50) as producer,
        ):
            for _ in range(3):
                handles.append(await producer.send("flights", b"v", partition=0, on_delivery=end))
            await asyncio.Event().wait()

    with pytest.raises(error):
        asyncio.run(asyncio.wait_for(program(), 10.0))
    assert [handle.result().offset for handle in handles] == called == [0, 1, 2]

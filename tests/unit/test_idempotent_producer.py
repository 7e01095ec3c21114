"""An idempotent producer on scripted brokers: every record once and in order, whatever is lost."""

import asyncio
from typing import Any

import pytest
from barnabas import Producer
from barnabas.producer.producer_id import ProducerIdAndEpoch
from barnabas_common.errors import (
    ClusterAuthorizationFailedError,
    DeliveryTimeoutError,
    InvalidProducerEpochError,
    InvalidRecordError,
    MaybeApplied,
    MessageTooLargeError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducedPartition, ProduceResponse
from barnabas_common.messages.producer_ids import InitProducerIdResponse
from barnabas_common.record.batch import BatchHeader, batches
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition

from tests.support.scripted_brokers import Fault, ScriptedBrokers, refuse

FLIGHTS_0 = TopicPartition("flights", 0)
FAST: dict[str, Any] = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}


def values(brokers: ScriptedBrokers, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in brokers.log(partition).records()]


def headers(brokers: ScriptedBrokers) -> list[BatchHeader]:
    return [header for _, header in batches(bytes(brokers.log().data))]


def stored(brokers: ScriptedBrokers) -> list[tuple[int, int]]:
    """Epoch and first sequence of every batch in the log."""
    return [(header.producer_epoch, header.base_sequence) for header in headers(brokers)]


async def fill(producer: Producer, records: range) -> list[Any]:
    """Send records that fill one batch each."""
    return [await producer.send("flights", b"%03d" % n, partition=0) for n in records]


def holding(release: asyncio.Event) -> Fault:
    """A request that reaches the broker only when `release` is set."""

    async def hold(broker_id: int, request: Any) -> Any:
        await release.wait()

    return hold


async def until_sent(brokers: ScriptedBrokers, requests: int) -> None:
    """Return when the brokers have been sent this many produce requests."""
    async with asyncio.timeout(5):
        while len(brokers.produced) < requests:
            await asyncio.sleep(0)


SMALL = {"batch_size": 64, **FAST}
# A batch has about 70 bytes: four of them are worth a request of their own.
PIPELINED = {"max_request_size": 500, **SMALL}


async def test_a_lost_answer_is_retried_and_the_first_offset_comes_back() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, request_timeout_ms=500, **FAST
        ) as producer:
            await producer.send_and_wait("flights", b"0")
            brokers.faults.append(brokers.append_and_fall_silent)
            handles = await fill(producer, range(1, 4))
            assert [(await handle).offset for handle in handles] == [1, 2, 3]
        assert values(brokers) == [b"0", b"001", b"002", b"003"]


async def test_the_first_id_that_a_broker_gives_is_used() -> None:
    async with ScriptedBrokers() as brokers:

        async def not_yet(broker_id: int, request: Any) -> Any:
            return InitProducerIdResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

        async def no_answer(broker_id: int, request: Any) -> Any:
            raise MaybeApplied("the connection broke")

        brokers.id_faults += [not_yet, not_yet]
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            await producer.send_and_wait("flights", b"v")
            await producer.send_and_wait("flights", b"v")
        used = {header.producer_id for header in headers(brokers)}
        assert used == {brokers.given_ids[-1]} and len(brokers.given_ids) == 3


async def test_a_producer_that_sends_nothing_needs_no_id() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            await producer.partitions_for("flights")
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, enable_idempotence=False
        ) as producer:
            await producer.send_and_wait("flights", b"v")
        assert brokers.given_ids == []
        assert [header.producer_id for header in headers(brokers)] == [-1]


async def test_without_an_id_a_record_expires_and_the_error_says_why() -> None:
    async with ScriptedBrokers() as brokers:

        async def never(broker_id: int, request: Any) -> Any:
            brokers.id_faults.append(never)
            return InitProducerIdResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

        brokers.id_faults.append(never)
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, request_timeout_ms=1_000,
            delivery_timeout_ms=2_000, **FAST,
        ) as producer:  # fmt: skip
            with pytest.raises(DeliveryTimeoutError, match="LOAD_IN_PROGRESS.*not in the log"):
                await producer.send_and_wait("flights", b"v")


async def test_a_refused_id_fails_what_waits_for_it() -> None:
    async with ScriptedBrokers() as brokers:

        async def refused(broker_id: int, request: Any) -> Any:
            return InitProducerIdResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

        brokers.id_faults.append(refused)
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            with pytest.raises(ClusterAuthorizationFailedError):
                await producer.send_and_wait("flights", b"v")
            assert (await producer.send_and_wait("flights", b"later")).offset == 0


async def test_five_batches_are_in_flight_if_much_waits_behind_the_first() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **PIPELINED) as producer:
            await producer.send_and_wait("flights", b"first")
            brokers.produced.clear()
            release = asyncio.Event()

            brokers.faults += [holding(release)] * 5
            handles = await fill(producer, range(20))
            await until_sent(brokers, 2)
            sent = [header for _, request in brokers.produced for part in request.partitions
                    for _, header in batches(part.records)]  # fmt: skip
            assert [header.base_sequence for header in sent] == [1, 2, 3, 4, 5]
            release.set()
            assert [(await handle).offset for handle in handles] == list(range(1, 21))
        assert stored(brokers) == [(0, sequence) for sequence in range(21)]


async def test_many_batches_in_one_request_are_recognized_by_the_last() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, request_timeout_ms=500, **SMALL
        ) as producer:
            await producer.send_and_wait("flights", b"first")
            release = asyncio.Event()

            async def hold_and_lose(broker_id: int, request: Any) -> Any:
                await release.wait()
                return await brokers.append_and_fall_silent(broker_id, request)

            brokers.faults += [hold_and_lose, brokers.append_and_fall_silent]
            brokers.faults += [brokers.append_and_fall_silent] * 3
            handles = await fill(producer, range(30))
            release.set()
            assert [(await handle).offset for handle in handles] == list(range(1, 31))
            assert producer.metrics().epochs_started == 0
        assert values(brokers)[1:] == [b"%03d" % n for n in range(30)]


async def test_one_bad_batch_among_many_fails_alone() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **SMALL) as producer:
            await producer.send_and_wait("flights", b"first")
            brokers.log().max_batch = 200
            handles = await fill(producer, range(10))
            bad = await producer.send("flights", b"x" * 300, partition=0)
            handles += await fill(producer, range(10, 20))
            with pytest.raises(MessageTooLargeError):
                await bad
            assert [(await handle).offset for handle in handles] == list(range(1, 21))
        assert values(brokers)[1:] == [b"%03d" % n for n in range(20)]


async def test_requests_that_fail_in_any_order_are_repeated_in_theirs() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **PIPELINED) as producer:
            await producer.send_and_wait("flights", b"first")
            later = asyncio.Event()

            async def refuse_late(broker_id: int, request: Any) -> Any:
                await later.wait()
                return await refuse(ErrorCode.NOT_ENOUGH_REPLICAS)(broker_id, request)

            brokers.faults += [refuse_late, refuse(ErrorCode.NOT_ENOUGH_REPLICAS)]
            handles = await fill(producer, range(1))
            await until_sent(brokers, 2)
            handles += await fill(producer, range(1, 12))
            await until_sent(brokers, 3)
            later.set()
            assert [(await handle).offset for handle in handles] == list(range(1, 13))
            assert producer.metrics().epochs_started == 0
        assert values(brokers)[1:] == [b"%03d" % n for n in range(12)]
        assert stored(brokers)[-1][0] == 0


async def test_a_refused_batch_leaves_no_gap_for_those_behind_it() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **SMALL) as producer:
            await producer.send_and_wait("flights", b"first")
            brokers.faults += [refuse(ErrorCode.INVALID_RECORD)]
            bad = await producer.send("flights", b"bad")
            await until_sent(brokers, 2)
            handles = await fill(producer, range(5))
            with pytest.raises(InvalidRecordError):
                await bad
            assert [(await handle).offset for handle in handles] == [1, 2, 3, 4, 5]
            assert producer.metrics().epochs_started == 1
        assert values(brokers) == [b"first", b"000", b"001", b"002", b"003", b"004"]
        assert stored(brokers)[0] == (0, 0) and stored(brokers)[1] == (1, 0)


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_batch_that_expires_in_flight_is_followed_once_and_in_order(
    is_stored: bool,
) -> None:
    async with ScriptedBrokers() as brokers:

        async def lose(broker_id: int, request: Any) -> Any:
            if is_stored:
                brokers.produce(broker_id, request)
            await asyncio.Event().wait()

        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, request_timeout_ms=500,
            delivery_timeout_ms=2_000, retries=1, **FAST,
        ) as producer:  # fmt: skip
            await producer.send_and_wait("flights", b"first")
            brokers.faults += [lose, lose]
            lost = await producer.send("flights", b"lost")
            await until_sent(brokers, 2)
            next_one = await producer.send("flights", b"next")
            with pytest.raises(DeliveryTimeoutError, match="may be in the log or not"):
                await lost
            await next_one
            await producer.send_and_wait("flights", b"last")
            assert producer.metrics().epochs_started == 1
        between = [b"lost"] if is_stored else []
        assert values(brokers) == [b"first", *between, b"next", b"last"]


async def test_a_later_refusal_does_not_say_that_nothing_is_stored() -> None:
    async with ScriptedBrokers() as brokers:

        async def lose(broker_id: int, request: Any) -> Any:
            brokers.produce(broker_id, request)
            await asyncio.Event().wait()

        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, request_timeout_ms=300,
            delivery_timeout_ms=1_000, **FAST,
        ) as producer:  # fmt: skip
            await producer.send_and_wait("flights", b"first")
            brokers.faults += [lose, *[refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 1000]
            lost = await producer.send("flights", b"lost")
            with pytest.raises(DeliveryTimeoutError, match="may be in the log or not"):
                await lost


async def test_a_leader_that_has_lost_the_producer_gets_a_new_epoch() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            await producer.send_and_wait("flights", b"0")

            async def unknown(broker_id: int, request: Any) -> Any:
                code = ErrorCode.UNKNOWN_PRODUCER_ID
                start = -1 if len(brokers.faults) else 5
                answer = ProducedPartition("flights", 0, code, log_start_offset=start)
                return ProduceResponse([answer])

            brokers.faults += [unknown, unknown]
            assert (await producer.send_and_wait("flights", b"1")).offset == 1
            assert producer.metrics().epochs_started == 1
        assert stored(brokers) == [(0, 0), (1, 0)]


async def test_a_duplicate_that_the_leader_cannot_place_is_delivered_without_offset() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer,
    ):
        brokers.faults.append(refuse(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
        assert (await producer.send_and_wait("flights", b"v")).offset == -1
        assert producer.metrics().records_acked == 1


async def test_a_fenced_epoch_fails_the_batch_and_the_next_has_another() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            await producer.send_and_wait("flights", b"0")
            brokers.faults.append(refuse(ErrorCode.INVALID_PRODUCER_EPOCH))
            with pytest.raises(InvalidProducerEpochError):
                await producer.send_and_wait("flights", b"1")
            await producer.send_and_wait("flights", b"2")
        assert stored(brokers) == [(0, 0), (1, 0)]


async def test_after_the_last_epoch_comes_another_id() -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            await producer.send_and_wait("flights", b"0")
            ids = producer._accumulator.ids
            assert ids is not None and ids.current is not None
            ids.current = ProducerIdAndEpoch(ids.current.producer_id, 2**15 - 1)
            await producer.send_and_wait("flights", b"1")
            brokers.faults.append(refuse(ErrorCode.INVALID_RECORD))
            with pytest.raises(InvalidRecordError):
                await producer.send_and_wait("flights", b"bad")
            await producer.send_and_wait("flights", b"2")
        assert [(h.producer_id, h.producer_epoch) for h in headers(brokers)] == [
            (1000, 0), (1000, 2**15 - 1), (1001, 0),
        ]  # fmt: skip


async def test_a_batch_too_large_is_split_and_its_parts_keep_the_sequences() -> None:
    async with ScriptedBrokers() as brokers:
        brokers.log().max_batch = 400
        async with Producer(brokers.bootstrap, runtime=brokers.runtime, **FAST) as producer:
            handles = [await producer.send("flights", b"%03d" % i * 20) for i in range(40)]
            assert [(await handle).offset for handle in handles] == list(range(40))
            assert producer.metrics().batches_split > 0
            assert producer.metrics().epochs_started == 0
        assert {epoch for epoch, _ in stored(brokers)} == {0}


async def test_batches_built_elsewhere_are_recognized_too() -> None:
    builder = BatchBuilder()
    for number in range(3):
        builder.append(5, None, b"%d" % number)
    payload = builder.build() * 7
    async with ScriptedBrokers() as brokers:
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, request_timeout_ms=500, **FAST
        ) as producer:
            await producer.send_and_wait("flights", b"first")
            brokers.faults += [brokers.append_and_fall_silent] * 2
            first = await producer.send_batch("flights", 0, payload)
            second = await producer.send_batch("flights", 0, payload)
            assert [(await first).offset, (await second).offset] == [1, 22]
        assert len(values(brokers)) == 43


@pytest.mark.parametrize("idempotent", [True, False])
async def test_the_producer_named_in_bytes_from_a_log_is_replaced(idempotent: bool) -> None:
    async with ScriptedBrokers() as brokers:
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            await producer.send_and_wait("flights", b"v")
        copied = bytes(brokers.log().data)
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, enable_idempotence=idempotent
        ) as producer:
            await (await producer.send_batch("flights", 0, copied))
        ids = [header.producer_id for header in headers(brokers)]
        assert ids == ([1000, 1001] if idempotent else [1000, -1])


async def test_a_new_leader_gets_nothing_new_before_the_old_one_has_answered() -> None:
    async with ScriptedBrokers(partitions=2) as brokers:
        brokers.elect(1, leader=2)
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, metadata_max_age_ms=10, **PIPELINED
        ) as producer:
            await producer.send_and_wait("flights", b"first", partition=0)
            release = asyncio.Event()

            brokers.faults.append(holding(release))
            handles = await fill(producer, range(1))
            await until_sent(brokers, 2)
            brokers.elect(0, leader=2)
            async with asyncio.timeout(5):
                while producer._cluster.metadata.leader(FLIGHTS_0) != (2, 2):
                    await asyncio.sleep(0.005)
            handles += await fill(producer, range(1, 8))
            await producer.send_and_wait("flights", b"another partition", partition=1)
            assert [broker for broker, _ in brokers.produced] == [1, 1, 2]
            release.set()
            assert [(await handle).offset for handle in handles] == list(range(1, 9))
            assert producer.metrics().epochs_started == 0
        assert values(brokers)[1:] == [b"%03d" % n for n in range(8)]

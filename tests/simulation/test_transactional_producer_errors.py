"""What an error does to a transaction and to its producer, against scripted brokers."""

import asyncio
from typing import Any

import pytest
from barnabas_common.errors import (
    BarnabasError,
    ClosedError,
    CorruptMessageError,
    DeliveryTimeoutError,
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    KafkaError,
    MessageTooLargeError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    TopicAuthorizationFailedError,
    TransactionAbortableError,
    TransactionFailedError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProduceRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import AddPartitionsToTxnRequest, EndTxnRequest

from tests.support.scripted_brokers import refuse
from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import epochs, producer_of, send, story

E = ErrorCode


def test_the_second_producer_fences_the_first_which_is_closed() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        first, second = producer_of(brokers, "first"), producer_of(brokers, "second")
        await first.init_transactions()
        with pytest.raises(ProducerFencedError) as caught:
            async with first.transaction():
                await send(first, b"zombie")
                await first.flush()
                await second.init_transactions()
                async with second.transaction():
                    await send(second, b"heir")
        assert caught.value.fatal and not caught.value.retriable
        with pytest.raises(ClosedError):
            await first.begin_transaction()
        await second.close()
        assert brokers.committed() == [b"heir"] and brokers.aborted() == [b"zombie"]

    story(scenario)


def test_a_block_whose_producer_is_fenced_meanwhile_does_not_end_as_if_it_had_committed() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        first, second = producer_of(brokers, "first"), producer_of(brokers, "second")
        async with first, second:
            await first.init_transactions()
            with pytest.raises(ProducerFencedError):
                async with first.transaction():
                    await second.init_transactions()
                    (record,) = await send(first, b"v")
                    with pytest.raises(ProducerFencedError):
                        await record
            with pytest.raises(ClosedError):
                await first.begin_transaction()
        assert brokers.committed() == []

    story(scenario)


def test_after_a_fatal_error_a_producer_can_only_be_closed() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            (handle,) = await send(producer, b"v")
            await handle
            async with producer_of(brokers, "heir") as heir:
                await heir.init_transactions()
            with pytest.raises(ProducerFencedError):
                await producer.commit_transaction()
            asked = len(brokers.asked)
            for again in (
                producer.init_transactions, producer.begin_transaction, producer.commit_transaction,
                producer.abort_transaction, lambda: send(producer, b"more"),
                lambda: producer.send_offsets_to_transaction({("flights", 0): 1}, "g"),
            ):  # fmt: skip
                with pytest.raises(ProducerFencedError):
                    await again()
            assert len(brokers.asked) == asked

    story(scenario)


def test_an_error_of_a_record_makes_the_commit_fail_until_the_abort() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.faults.append(refuse(E.INVALID_RECORD))
            await send(producer, b"bad")
            with pytest.raises(KafkaError, match="INVALID_RECORD") as caught:
                await producer.commit_transaction()
            assert not caught.value.fatal and not caught.value.retriable
            with pytest.raises(KafkaError, match="INVALID_RECORD"):
                await send(producer, b"more")
            with pytest.raises(KafkaError, match="INVALID_RECORD"):
                await producer.commit_transaction()
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"good")
        assert brokers.committed() == [b"good"]
        assert brokers.requests(EndTxnRequest)[0].committed is False

    story(scenario)


def test_a_record_that_is_refused_at_once_is_missing_in_the_transaction() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            with pytest.raises(InvalidArgumentError):
                await producer.send("flights", "no bytes")  # type: ignore[arg-type]
            with pytest.raises(MessageTooLargeError):
                await producer.send("flights", bytes(2_000_000))
            with pytest.raises(MessageTooLargeError):
                await producer.commit_transaction()
            await producer.abort_transaction()
        assert brokers.committed() == []

    story(scenario)


def test_a_commit_whose_producer_is_closed_is_not_called_aborted() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        producer = producer_of(brokers)
        await producer.init_transactions()
        await producer.begin_transaction()
        await send(producer, b"a")
        brokers.silences[EndTxnRequest] = 1
        commit = asyncio.create_task(producer.commit_transaction())
        while not brokers.committed():
            await asyncio.sleep(0.1)
        await producer.close(timeout_ms=100)
        with pytest.raises(ClosedError, match="commit_transaction.*outcome is not known"):
            await commit
        assert brokers.committed() == [b"a"]

    story(scenario)


@pytest.mark.parametrize("batch", [bytes(2_000_000), b"torn"])
def test_batches_that_cannot_be_sent_abort_the_transaction(batch: bytes) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            with pytest.raises(CorruptMessageError):
                await producer.send_batch("flights", 0, batch)
            with pytest.raises(TransactionAbortableError):
                await producer.commit_transaction()
            await producer.abort_transaction()
        assert brokers.committed() == []

    story(scenario)


def test_records_that_expire_make_the_transaction_abort() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        options = {"delivery_timeout_ms": 2_000, "request_timeout_ms": 500}
        async with producer_of(brokers, **options) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            (handle,) = await send(producer, b"first")
            await handle

            async def silent(broker_id: int, request: Any) -> Any:
                brokers.faults.append(silent)
                await asyncio.Event().wait()

            brokers.faults.append(silent)
            await send(producer, b"lost", b"lost too")
            with pytest.raises(DeliveryTimeoutError):
                await producer.commit_transaction()
            brokers.faults.clear()
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"a", b"b")
        assert brokers.committed() == [b"a", b"b"]

    story(scenario)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, OutOfOrderSequenceNumberError),
        (E.UNKNOWN_PRODUCER_ID, KafkaError),
        (E.TRANSACTION_ABORTABLE, TransactionAbortableError),
        (E.INVALID_PRODUCER_EPOCH, InvalidProducerEpochError),
        (E.INVALID_TXN_STATE, KafkaError),
    ],
)
def test_a_leader_that_refuses_a_batch_makes_the_transaction_abort(
    code: ErrorCode, kind: type[BarnabasError]
) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async def refused(broker_id: int, request: ProduceRequest) -> Any:
            answer = await refuse(code)(broker_id, request)
            for part in answer.partitions:
                part.log_start_offset = 0
            return answer

        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.faults.append(refused)
            await send(producer, b"x")
            with pytest.raises(kind) as caught:
                await producer.commit_transaction()
            assert not caught.value.fatal
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"y")
        assert brokers.committed() == [b"y"]
        assert epochs(brokers) == [(1, 0)], "the abort raised the epoch"

    story(scenario)


def test_a_transaction_that_timed_out_fences_its_producer() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            await producer.flush()
            brokers.time_out("copy")
            with pytest.raises(InvalidProducerEpochError):
                await (await send(producer, b"b"))[0]
            with pytest.raises(ProducerFencedError, match="open for too long"):
                await producer.abort_transaction()
        assert brokers.committed() == [] and brokers.aborted() == [b"a"]

    story(scenario)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (InitProducerIdRequest, E.UNKNOWN_SERVER_ERROR),
        (AddPartitionsToTxnRequest, E.INVALID_TXN_STATE),
        (EndTxnRequest, E.INVALID_TXN_STATE),
        (EndTxnRequest, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_answer_without_a_way_on_is_fatal(kind: type, code: ErrorCode) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[kind] += [code]
        async with producer_of(brokers) as producer:
            with pytest.raises(TransactionFailedError, match=code.name) as caught:
                await producer.init_transactions()
                async with producer.transaction():
                    await send(producer, b"a")
            assert caught.value.fatal
        assert brokers.committed() == []

    story(scenario)


def test_a_topic_that_may_not_be_written_makes_the_transaction_abort() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refused_topics.add("flights")
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            handles = await send(producer, b"a", b"b")
            with pytest.raises(TopicAuthorizationFailedError):
                await producer.commit_transaction()
            with pytest.raises(TopicAuthorizationFailedError):
                handles[0].result()
            await producer.abort_transaction()
        assert brokers.produced == []

    story(scenario)


def test_a_coordinator_that_forgot_the_producer_gives_it_another_id() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a")
            brokers.transactions.clear()  # it has expired
            await producer.begin_transaction()
            await send(producer, b"b")
            with pytest.raises(InvalidProducerIdMappingError) as caught:
                await producer.commit_transaction()
            assert not caught.value.fatal
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"c")
        assert brokers.committed() == [b"a", b"c"]

    story(scenario)

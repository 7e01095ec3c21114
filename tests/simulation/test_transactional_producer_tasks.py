"""Transactional producers with several tasks, and with calls that time out or are cancelled."""

import asyncio
from typing import Any

import pytest
from barnabas import Producer
from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    ClosedError,
    InvalidProducerIdMappingError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import AddPartitionsToTxnRequest, EndTxnRequest
from barnabas_common.record.builder import BatchBuilder

from tests.support.scripted_group import Held
from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import producer_of, send, story

TWO_PHASE: dict[str, Any] = {"enable_two_phase_commit": True, "max_block_ms": 1_000}


async def given_up(producer: Producer, held: Held, cancelled: bool) -> None:
    """A call of `prepare_transaction` that does not learn the outcome."""
    held.reached.clear()
    held.release.clear()
    await producer.begin_transaction()
    await send(producer, b"0")
    preparing = asyncio.create_task(producer.prepare_transaction())
    await held.reached.wait()
    if cancelled:
        preparing.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else RequestTimedOutError):
        await preparing


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("delivered", [False, True])
def test_what_is_not_known_to_be_prepared_is_aborted_by_close(
    cancelled: bool, delivered: bool
) -> None:
    """No timeout ends it: it would hold readers of committed records back forever."""

    async def scenario(brokers: TransactionBrokers) -> None:
        held = brokers.hold(AddPartitionsToTxnRequest, lambda _: True)
        async with producer_of(brokers, **TWO_PHASE) as producer:
            await producer.init_transactions()
            await given_up(producer, held, cancelled)
            assert producer.prepared_transaction is None, "its record is not delivered"
            held.release.set()
            if delivered:
                await producer.flush()
        assert [request.committed for request in brokers.requests(EndTxnRequest)] == [False]
        assert brokers.undecided() == brokers.committed() == []

    story(scenario)


def test_a_block_aborts_what_it_could_not_prepare() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        held = brokers.hold(AddPartitionsToTxnRequest, lambda _: True)
        async with producer_of(brokers, **TWO_PHASE) as producer:
            await producer.init_transactions()
            with pytest.raises(RequestTimedOutError, match="prepare_transaction"):
                async with producer.transaction():
                    await send(producer, b"0")
                    try:
                        await producer.prepare_transaction()
                    finally:
                        held.release.set()
            async with producer.transaction():
                await send(producer, b"1")
        assert brokers.committed() == [b"1"]

    story(scenario)


def test_a_prepare_that_is_called_again_learns_the_outcome_unless_it_is_aborted() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        held = brokers.hold(AddPartitionsToTxnRequest, lambda _: True)
        async with producer_of(brokers, **TWO_PHASE) as producer:
            await producer.init_transactions()
            await given_up(producer, held, cancelled=False)
            held.release.set()
            prepared = await producer.prepare_transaction()
            assert prepared is not None and producer.prepared_transaction == prepared
            await producer.commit_transaction()
            await given_up(producer, held, cancelled=True)
            waiting = asyncio.create_task(producer.prepare_transaction())
            await asyncio.sleep(0)
            held.release.set()
            await producer.abort_transaction()
            with pytest.raises(BarnabasError, match="aborted meanwhile"):
                await waiting
        assert brokers.committed() == [b"0"]
        assert brokers.undecided() == []

    story(scenario)


def test_a_block_whose_producer_another_task_closes_does_not_end_as_if_it_had_committed() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        producer = producer_of(brokers)
        await producer.init_transactions()
        with pytest.raises(ClosedError):
            async with producer.transaction():
                await send(producer, b"v")
                await asyncio.create_task(producer.close())
        assert brokers.committed() == brokers.undecided() == []

    story(scenario)


@pytest.mark.parametrize("prebuilt", [False, True])
@pytest.mark.parametrize("waits_for", ["metadata", "memory"])
def test_a_record_that_waited_is_not_sent_in_the_next_transaction(
    waits_for: str, prebuilt: bool
) -> None:
    """It would be there twice: its transaction was aborted, and is repeated."""

    async def scenario(brokers: TransactionBrokers) -> None:
        held = brokers.hold(AddPartitionsToTxnRequest, lambda _: True)
        small = {"buffer_memory": 300, "batch_size": 200} if waits_for == "memory" else {}
        async with producer_of(brokers, **small) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            if waits_for == "memory":
                await producer.send("flights", b"f" * 150, partition=0)
                await held.reached.wait()
            late = asyncio.create_task(one_record(producer, b"late", prebuilt))
            await asyncio.sleep(0)
            held.release.set()
            await producer.abort_transaction()
            await producer.begin_transaction()
            with pytest.raises(ClientError, match="send: "):
                await late
            await producer.send("flights", b"next", partition=0)
            await producer.commit_transaction()
        assert brokers.committed() == [b"next"]

    story(scenario)


async def one_record(producer: Producer, value: bytes, prebuilt: bool) -> None:
    if prebuilt:
        builder = BatchBuilder()
        builder.append(0, None, value)
        await producer.send_batch("flights", 1, builder.build())
    else:
        await producer.send("flights", value, partition=1)


def test_a_record_that_was_refused_too_late_does_not_fail_the_next_transaction() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, max_block_ms=1_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            late = asyncio.create_task(producer.send("trains", b"late"))
            await asyncio.sleep(0)
            await producer.abort_transaction()
            async with producer.transaction():
                with pytest.raises(UnknownTopicOrPartitionError):
                    await late
                await send(producer, b"next")
        assert brokers.committed() == [b"next"]

    story(scenario)


@pytest.mark.parametrize("closed", [False, True])
def test_an_abort_that_waits_for_another_id_is_called_again(closed: bool) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, max_block_ms=1_000) as producer:
            await producer.init_transactions()
            brokers.transactions.clear()  # it has expired
            await producer.begin_transaction()
            await send(producer, b"lost")
            with pytest.raises(InvalidProducerIdMappingError):
                await producer.commit_transaction()
            held = brokers.hold(InitProducerIdRequest, lambda _: True)
            with pytest.raises(RequestTimedOutError):
                await producer.abort_transaction()
            assert producer.initialized and producer.in_transaction
            asyncio.get_running_loop().call_later(0.5, held.release.set)
            if closed:
                await producer.close()
            else:
                await producer.abort_transaction()
                assert not producer.in_transaction
                async with producer.transaction():
                    await send(producer, b"next")
        assert "copy" in brokers.transactions, "the abort has ended"
        assert brokers.committed() == ([] if closed else [b"next"])

    story(scenario)

"""A transactional producer whose scripted coordinator moves, is slow, or does not answer."""

import asyncio

import pytest
from barnabas_common.errors import ClientError, RequestTimedOutError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import AddPartitionsToTxnRequest, EndTxnRequest

from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import producer_of, send, story

E = ErrorCode


@pytest.mark.parametrize("kind", [InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest])
@pytest.mark.parametrize(
    "codes",
    [
        [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE],
        [E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS],
    ],
)
def test_retriable_errors_of_the_coordinator_are_retried(kind: type, codes: list[int]) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[kind] += codes
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a", b"b")
        assert brokers.committed() == [b"a", b"b"]
        assert len(brokers.requests(kind)) >= 3

    story(scenario)


@pytest.mark.parametrize("kind", [InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest])
def test_a_lost_answer_is_asked_for_again(kind: type) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.silences[kind] = 2
        async with producer_of(brokers, request_timeout_ms=500) as producer:
            await producer.init_transactions()
            for value in (b"a", b"b"):
                async with producer.transaction():
                    await send(producer, value)
        assert brokers.committed() == [b"a", b"b"]

    story(scenario)


def test_the_coordinator_moves_and_is_found_again() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, request_timeout_ms=500) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            await producer.flush()
            brokers.transaction_coordinator = 3
            await producer.commit_transaction()
            brokers.transaction_coordinator = 1
            await producer.begin_transaction()
            await send(producer, b"b")
            brokers.kill(1)
            committing = asyncio.create_task(producer.commit_transaction())
            await asyncio.sleep(5.0)
            brokers.elect(0, 2)
            brokers.transaction_coordinator = 2
            await committing
        assert brokers.committed(0) == [b"a", b"b"]

    story(scenario)


def test_a_call_that_times_out_is_repeated_and_nothing_else_is_possible() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, max_block_ms=1_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            held = brokers.hold(EndTxnRequest, lambda _: True)
            with pytest.raises(RequestTimedOutError, match="call it again") as caught:
                await producer.commit_transaction()
            assert caught.value.retriable
            for other in (producer.abort_transaction, producer.begin_transaction):
                with pytest.raises(ClientError, match="commit_transaction is not known"):
                    await other()
            held.release.set()
            await asyncio.sleep(5.0)
            await producer.commit_transaction()
            assert len(brokers.requests(EndTxnRequest)) == 1
            async with producer.transaction():
                await send(producer, b"b")
        assert brokers.committed() == [b"a", b"b"]

    story(scenario)


def test_a_commit_that_its_caller_gave_up_goes_on() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            held = brokers.hold(EndTxnRequest, lambda _: True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await producer.commit_transaction()
            held.release.set()
        assert brokers.committed() == [b"a"], "close waited for it"

    story(scenario)


def test_an_abort_does_not_end_what_the_coordinator_has_not_begun() -> None:
    """While it completes the transaction before, it would take the producer for a fenced one."""

    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a")
            brokers.refusals[AddPartitionsToTxnRequest] += [E.CONCURRENT_TRANSACTIONS] * 1_000
            await producer.begin_transaction()
            await send(producer, b"b")
            await asyncio.sleep(0.2)
            async with asyncio.timeout(5.0):
                await producer.abort_transaction()
            assert len(brokers.requests(EndTxnRequest)) == 1
            brokers.refusals[AddPartitionsToTxnRequest].clear()
            async with producer.transaction():
                await send(producer, b"c")
        assert brokers.committed() == [b"a", b"c"]

    story(scenario)


def test_an_abort_waits_until_it_knows_whether_the_transaction_has_begun() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, request_timeout_ms=500) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.silences[AddPartitionsToTxnRequest] = 2
            await send(producer, b"a")
            await asyncio.sleep(0.2)
            await producer.abort_transaction()
            assert len(brokers.requests(AddPartitionsToTxnRequest)) == 3
            assert [r.committed for r in brokers.requests(EndTxnRequest)] == [False]
        assert not brokers.transactions["copy"].open

    story(scenario)

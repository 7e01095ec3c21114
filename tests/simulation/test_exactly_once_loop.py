"""The loop that consumes, transforms and produces, each record once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from barnabas import (
    Consumer,
    ConsumerRecord,
    Producer,
    ProducerRecord,
    exactly_once,
)
from barnabas_common.errors import (
    ClientError,
    InvalidArgumentError,
    InvalidGroupIdError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

from tests.support.copying import Copying, committed_offset, consumer_of, copy, copying, every, fill
from tests.support.scripted_brokers import refuse
from tests.support.transactional_producer import producer_of

E = ErrorCode


def test_the_loop_copies_each_record_once_and_commits_where_it_is() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 20)
        async with (
            consumer_of(brokers, max_poll_records=7) as consumer,
            producer_of(brokers) as producer,
        ):
            assert await exactly_once(consumer, producer, copy, idle_ms=5_000) == 60
        assert brokers.copies() == every(20)
        assert [committed_offset(brokers, p) for p in range(3)] == [20, 20, 20]

    copying(scenario)


def test_a_transaction_that_fails_is_repeated_with_the_same_records() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 20)
        brokers.faults += [refuse(E.TRANSACTION_ABORTABLE), refuse(E.OUT_OF_ORDER_SEQUENCE_NUMBER)]
        brokers.refusals[TxnOffsetCommitRequest] += [0, 0, E.ILLEGAL_GENERATION]

        async def slowly(record: ConsumerRecord) -> list[ProducerRecord]:
            await asyncio.sleep(0.001)
            return copy(record)

        async with (
            consumer_of(brokers, max_poll_records=7) as consumer,
            producer_of(brokers) as producer,
        ):
            assert await exactly_once(consumer, producer, slowly, idle_ms=5_000) == 60
        assert brokers.copies() == every(20)
        assert sum(not r.committed for r in brokers.requests(EndTxnRequest)) == 3

    copying(scenario)


def test_an_exception_of_the_transformation_ends_the_loop_where_it_happened() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 4)
        broken = True

        def fragile(record: ConsumerRecord) -> list[ProducerRecord]:
            if broken and record.value == b"1-2":
                raise ZeroDivisionError
            return copy(record)

        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            with pytest.raises(ZeroDivisionError):
                await exactly_once(consumer, producer, fragile, idle_ms=5_000)
            broken = False
            await exactly_once(consumer, producer, fragile, idle_ms=5_000)
        assert brokers.copies() == every(4)

    copying(scenario)


def test_an_output_that_cannot_be_sent_ends_the_loop() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 1)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            with pytest.raises(UnknownTopicOrPartitionError):
                await exactly_once(consumer, producer, lambda r: [ProducerRecord("nowhere", b"")])
        assert brokers.copies() == [] and committed_offset(brokers) is None

    copying(scenario)


def test_the_loop_of_a_fenced_producer_ends_and_its_heir_goes_on() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 20)
        async with (
            consumer_of(brokers, max_poll_records=7) as consumer,
            producer_of(brokers) as zombie,
            producer_of(brokers, "heir") as heir,
        ):
            calls = 0

            async def overtaken(record: ConsumerRecord) -> list[ProducerRecord]:
                nonlocal calls
                calls += 1
                if calls == 10:
                    await heir.init_transactions()
                return copy(record)

            with pytest.raises(ProducerFencedError):
                await exactly_once(consumer, zombie, overtaken)
            await exactly_once(consumer, heir, copy, idle_ms=5_000)
        assert brokers.copies() == every(20)

    copying(scenario)


@contextlib.asynccontextmanager
async def cancelled_in_its_commit(
    brokers: Copying, consumer: Consumer, producer: Producer
) -> AsyncIterator[None]:
    """A loop is cancelled before its EndTxn arrives, which it does after the block."""
    held = brokers.hold(EndTxnRequest, lambda _: True)
    loop = asyncio.create_task(exactly_once(consumer, producer, copy))
    await held.reached.wait()
    loop.cancel()
    await asyncio.sleep(0.1)
    yield
    held.release.set()
    with pytest.raises(asyncio.CancelledError):
        await loop


def test_a_loop_that_is_cancelled_while_it_commits_reads_nothing_twice() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            async with cancelled_in_its_commit(brokers, consumer, producer):
                pass
            with contextlib.suppress(ClientError):  # what a begin advises if it does not know
                await producer.commit_transaction()
            await exactly_once(consumer, producer, copy, idle_ms=5_000)
        assert brokers.copies() == every(3)

    copying(scenario)


def test_a_loop_that_is_cancelled_while_its_commit_is_refused_reads_again() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            async with cancelled_in_its_commit(brokers, consumer, producer):
                brokers.refusals[EndTxnRequest] += [E.TRANSACTION_ABORTABLE]
            await exactly_once(consumer, producer, copy, idle_ms=5_000)
        assert brokers.copies() == every(3)

    copying(scenario)


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("twice", [False, True])
def test_a_loop_that_is_cancelled_and_does_not_learn_its_outcome_is_started_again(
    told: bool, refused: bool, twice: bool
) -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with (
            consumer_of(brokers, max_poll_records=3) as consumer,
            producer_of(brokers, max_block_ms=1_000) as producer,
        ):
            held = brokers.hold(EndTxnRequest, lambda _: True)
            loop = asyncio.create_task(exactly_once(consumer, producer, copy))
            await held.reached.wait()
            loop.cancel()
            if twice:
                await asyncio.sleep(0.1)
                loop.cancel()
            with pytest.raises(asyncio.CancelledError):
                await loop
            if refused:
                brokers.refusals[EndTxnRequest] += [E.TRANSACTION_ABORTABLE]
            asyncio.get_running_loop().call_later(1.5, held.release.set)
            if told:  # what `begin_transaction` advises
                with contextlib.suppress(TransactionAbortableError, RequestTimedOutError):
                    await producer.commit_transaction()
            await exactly_once(consumer, producer, copy, idle_ms=5_000)
        assert brokers.copies() == every(3)

    copying(scenario)


def test_a_loop_that_is_cancelled_before_it_has_an_id_can_be_started_again() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            held = brokers.hold(InitProducerIdRequest, lambda _: True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await exactly_once(consumer, producer, copy)
            held.release.set()
            await exactly_once(consumer, producer, copy, idle_ms=5_000)
        assert brokers.copies() == every(3)

    copying(scenario)


def test_a_loop_goes_on_when_another_producer_id_takes_longer_than_a_call() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with (
            consumer_of(brokers) as consumer,
            producer_of(brokers, max_block_ms=1_000) as producer,
        ):
            await producer.init_transactions()
            brokers.transactions.clear()  # it has expired
            held = brokers.hold(InitProducerIdRequest, lambda _: True)
            asyncio.get_running_loop().call_later(5.0, held.release.set)
            await exactly_once(consumer, producer, copy, idle_ms=10_000)
        assert brokers.copies() == every(3)

    copying(scenario)


def test_two_loops_in_a_group_and_one_that_leaves() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 30)

        async def slowly(record: ConsumerRecord) -> list[ProducerRecord]:
            await asyncio.sleep(0.05)
            return copy(record)

        async def copier(name: str, seconds: float | None) -> None:
            async with (
                consumer_of(brokers, name, max_poll_records=5) as consumer,
                producer_of(brokers, name, transactional_id=name) as producer,
            ):
                loop = exactly_once(consumer, producer, slowly, idle_ms=20_000)
                try:
                    async with asyncio.timeout(seconds):
                        await loop
                except TimeoutError:
                    pass

        await asyncio.gather(copier("one", None), copier("two", 1.0))
        assert brokers.copies() == every(30)

    copying(scenario)


def test_the_loop_refuses_a_consumer_that_commits_by_itself_or_has_no_group() -> None:
    async def scenario(brokers: Copying) -> None:
        async with producer_of(brokers) as producer:
            async with consumer_of(brokers, enable_auto_commit=True) as consumer:
                with pytest.raises(InvalidArgumentError, match="enable_auto_commit=False"):
                    await exactly_once(consumer, producer, copy)
            async with consumer_of(brokers, offsets_storage="zookeeper") as consumer:
                with pytest.raises(InvalidArgumentError, match='offsets_storage="kafka"'):
                    await exactly_once(consumer, producer, copy)
                with pytest.raises(ClientError, match="ZooKeeper"):
                    consumer.group_metadata()
            async with consumer_of(brokers, group_id=None) as consumer:
                with pytest.raises(InvalidGroupIdError):
                    await exactly_once(consumer, producer, copy)
        async with (
            consumer_of(brokers) as consumer,
            Producer(brokers.bootstrap, runtime=brokers.runtime_of("plain")) as plain,
        ):
            with pytest.raises(ClientError, match="transactional_id"):
                await exactly_once(consumer, plain, copy)
        assert not brokers.requests(AddOffsetsToTxnRequest)

    copying(scenario)

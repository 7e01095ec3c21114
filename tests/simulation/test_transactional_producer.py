"""A transactional producer against scripted brokers: the course of a transaction."""

import asyncio
from typing import Any

import pytest
from barnabas import Producer
from barnabas.producer.transaction.states import State
from barnabas_common.errors import TransactionAbortedError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import AddPartitionsToTxnRequest
from barnabas_common.record.batch import batches
from barnabas_common.record.builder import BatchBuilder

from tests.support.scripted_brokers import refuse
from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import epochs, producer_of, send, story

E = ErrorCode


def test_what_is_committed_becomes_visible_at_once() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, transaction_timeout_ms=9_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            handles = await send(producer, b"a", b"b", b"c")
            await producer.flush()
            assert brokers.committed() == [] and len(brokers.undecided()) == 3
            await producer.commit_transaction()
            assert brokers.committed() == [b"a", b"b", b"c"]
            assert all(handle.done() for handle in handles)
        assert brokers.transactions["copy"].timeout_ms == 9_000
        assert {request.transactional_id for _, request in brokers.produced} == {"copy"}

    story(scenario)


def test_every_transaction_has_an_epoch_and_sequences_from_0() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            for number in range(3):
                await producer.begin_transaction()
                await send(producer, b"%d" % number)
                if number == 1:
                    await producer.flush()
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        assert epochs(brokers) == [(0, 0), (1, 0), (2, 0)]
        assert brokers.committed() == [b"0", b"2"] and brokers.aborted() == [b"1"]

    story(scenario)


def test_partitions_are_added_before_their_records_and_together() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            held = brokers.hold(AddPartitionsToTxnRequest, lambda _: True)
            await producer.send("flights", b"0", partition=0)
            await held.reached.wait()
            for number in (1, 2, 1):
                await producer.send("flights", b"%d" % number, partition=number)
            await asyncio.sleep(1.0)
            assert brokers.produced == []
            held.release.set()
            await producer.commit_transaction()
            asked = brokers.requests(AddPartitionsToTxnRequest)
            named = [[p.partition for p in r.transactions[0].partitions] for r in asked]
            assert named == [[0], [1, 2]]
            assert asked[0].transactions[0].transaction_version == 2

    story(scenario)


def test_a_transaction_without_records_asks_no_coordinator() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            for _ in range(2):
                async with producer.transaction():
                    pass
                await producer.begin_transaction()
                await producer.abort_transaction()
        assert [type(request) for request in brokers.asked] == [InitProducerIdRequest]

    story(scenario)


def test_an_abort_drops_what_is_queued_and_waits_for_what_is_in_flight() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, linger_ms=60_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            release = asyncio.Event()

            async def hold(broker_id: int, request: Any) -> Any:
                await release.wait()

            brokers.faults.append(hold)
            (sent,) = await send(producer, b"sent")
            flushing = asyncio.create_task(producer.flush())
            while not brokers.produced:
                await asyncio.sleep(0.01)
            queued = await producer.send("flights", b"queued", partition=1)
            aborting = asyncio.create_task(producer.abort_transaction())
            await asyncio.sleep(1.0)
            assert not aborting.done() and not sent.done()
            with pytest.raises(TransactionAbortedError):
                queued.result()
            release.set()
            await aborting
            await flushing
            assert sent.result().offset == 0
        assert brokers.aborted() == [b"sent"] and brokers.committed() == []

    story(scenario)


def test_a_block_commits_at_its_end_and_aborts_after_an_exception() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a", b"b")
            with pytest.raises(ValueError, match="mine"):
                async with producer.transaction():
                    await send(producer, b"c")
                    await producer.flush()
                    raise ValueError("mine")
            async with producer.transaction() as same:
                await send(same, b"d")
        assert brokers.committed() == [b"a", b"d", b"b"] and brokers.aborted() == [b"c"]

    story(scenario)


@pytest.mark.parametrize("failed", [False, True])
def test_close_aborts_an_open_transaction(failed: bool) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        producer = producer_of(brokers)
        await producer.init_transactions()
        await producer.begin_transaction()
        await send(producer, b"a")
        await producer.flush()
        if failed:
            brokers.faults.append(refuse(E.INVALID_RECORD))
            await send(producer, b"b")
            await producer.flush()
        await producer.close()
        assert brokers.aborted() == [b"a"] and not brokers.transactions["copy"].open

    story(scenario)


def test_batches_built_elsewhere_are_part_of_the_transaction() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        builder = BatchBuilder("gzip")
        for number in range(3):
            builder.append(0, None, b"%d" % number)
        built = builder.build()
        async with producer_of(brokers, compression_type="gzip") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("flights", b"first", partition=0)
                await producer.send_batch("flights", 0, built * 2)
            copied = bytes(brokers.log().data)
        assert brokers.committed(0) == [b"first", *[b"0", b"1", b"2"] * 2]
        assert epochs(brokers) == [(0, 0), (0, 1), (0, 4)]
        async with Producer(brokers.bootstrap, runtime=brokers.runtime_of("plain")) as plain:
            await (await plain.send_batch("flights", 1, copied))
        copies = [header for _, header in batches(bytes(brokers.log(1).data))]
        assert len(copies) == 3 and not any(header.is_transactional for header in copies)

    story(scenario)


def test_a_batch_that_is_too_large_is_split_within_the_transaction() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.log().max_batch = 400
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                for number in range(20):
                    await producer.send("flights", b"%030d" % number, partition=0)
        assert brokers.committed(0) == [b"%030d" % number for number in range(20)]
        assert len(epochs(brokers)) > 1

    story(scenario)


def test_the_states_follow_the_table() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.start()
            manager = producer.transactions
            assert manager is not None and manager.state is State.UNINITIALIZED
            await producer.init_transactions()
            assert manager.state is State.READY
            await producer.begin_transaction()
            assert manager.state is State.IN_TRANSACTION
            await producer.commit_transaction()
            assert manager.state is State.READY

    story(scenario)

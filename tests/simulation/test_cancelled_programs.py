"""All tasks of a program are cancelled at once, as `asyncio.run` does when its main task ends.

The tasks of a client are among them. What an application then closes must not wait for them.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import ClosedError
from barnabas_common.topic_partition import TopicPartition

from tests.support.group_stories import member
from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import producer_of, story

Program = Callable[[TransactionBrokers, asyncio.Event], Awaitable[None]]
LEADERLESS = TopicPartition("flights", 0)
LONGEST_SECONDS = 61.0  # `max_block_ms`, for the end of a transaction


async def forever(started: asyncio.Event) -> None:
    started.set()
    await asyncio.Event().wait()


async def a_record_waits(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    async with Producer(brokers.bootstrap, runtime=brokers.runtime_of("p")) as producer:
        await producer.send("flights", b"v", partition=0)
        await forever(started)


async def the_producer_is_closed_at_last(
    brokers: TransactionBrokers, started: asyncio.Event
) -> None:
    producer = Producer(brokers.bootstrap, runtime=brokers.runtime_of("p"))
    await producer.send("flights", b"v", partition=0)
    try:
        await forever(started)
    finally:
        await producer.send("flights", b"last", partition=0)
        await producer.close()


async def the_records_are_flushed_at_last(
    brokers: TransactionBrokers, started: asyncio.Event
) -> None:
    async with Producer(brokers.bootstrap, runtime=brokers.runtime_of("p")) as producer:
        await producer.send("flights", b"v", partition=0)
        try:
            await forever(started)
        finally:
            with pytest.raises(ClosedError, match="tasks were cancelled"):
                await producer.send_and_wait("flights", b"waited for", partition=0)
            await producer.send("flights", b"last", partition=0)
            await producer.flush()
            assert not producer.undelivered


async def a_record_lingers(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    runtime = brokers.runtime_of("p")
    async with Producer(brokers.bootstrap, runtime=runtime, linger_ms=100_000) as producer:
        await producer.send("flights", b"v", partition=1)
        await forever(started)


async def a_handle_is_awaited(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    async with Producer(brokers.bootstrap, runtime=brokers.runtime_of("p")) as producer:
        handle = await producer.send("flights", b"v", partition=0)
        started.set()
        await handle


async def a_flush_is_awaited(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    async with Producer(brokers.bootstrap, runtime=brokers.runtime_of("p")) as producer:
        await producer.send("flights", b"v", partition=0)
        started.set()
        await producer.flush()


async def a_transaction_is_open(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    async with producer_of(brokers) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send("flights", b"v", partition=0)
            await forever(started)


async def a_transaction_has_failed(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    """Another producer fences this one while a request is unanswered."""
    brokers.faults.append(brokers.append_and_fall_silent)
    async with producer_of(brokers) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send("flights", b"v", partition=1)
            while brokers.faults:
                await asyncio.sleep(0.01)
            async with producer_of(brokers, "other") as other:
                await other.init_transactions()
            await producer.send("flights", b"v", partition=2)
            while producer.in_transaction:
                await asyncio.sleep(0.01)
            await forever(started)


async def the_transaction_is_aborted_at_last(
    brokers: TransactionBrokers, started: asyncio.Event
) -> None:
    producer = producer_of(brokers)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send("flights", b"v", partition=0)
    await producer.send("flights", b"v", partition=1)
    try:
        await forever(started)
    finally:
        await producer.close()


async def until_assigned(consumer: Consumer) -> None:
    while not consumer.assignment():
        await consumer.poll(timeout_ms=100)


async def a_member_polls(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    async with member(brokers) as consumer:
        await until_assigned(consumer)
        started.set()
        async for _ in consumer:
            pass


async def the_consumer_is_closed_at_last(
    brokers: TransactionBrokers, started: asyncio.Event
) -> None:
    consumer = member(brokers)
    await until_assigned(consumer)
    try:
        await forever(started)
    finally:
        await consumer.close()


async def a_consumer_polls(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    runtime = brokers.runtime_of("c")
    async with Consumer(bootstrap_servers=brokers.bootstrap, runtime=runtime) as consumer:
        consumer.assign([LEADERLESS])
        started.set()
        async for _ in consumer:
            pass


async def an_admin_asks(brokers: TransactionBrokers, started: asyncio.Event) -> None:
    async with Admin(brokers.bootstrap, runtime=brokers.runtime_of("a")) as admin:
        started.set()
        await admin.list_offsets({LEADERLESS: -1})


PROGRAMS: list[Program] = [
    a_record_waits,
    a_record_lingers,
    a_handle_is_awaited,
    a_flush_is_awaited,
    the_producer_is_closed_at_last,
    the_records_are_flushed_at_last,
    a_transaction_is_open,
    a_transaction_has_failed,
    the_transaction_is_aborted_at_last,
    a_member_polls,
    the_consumer_is_closed_at_last,
    a_consumer_polls,
    an_admin_asks,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_ends_when_all_its_tasks_are_cancelled(program: Program) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.log(0).leader = -1
        before, started = asyncio.all_tasks(), asyncio.Event()
        running = asyncio.ensure_future(program(brokers, started))
        await started.wait()
        await asyncio.sleep(1)  # virtual: the program has come to its wait
        for task in asyncio.all_tasks() - before:
            task.cancel()
        async with asyncio.timeout(LONGEST_SECONDS):
            await asyncio.wait([running])
        assert running.cancelled()

    story(scenario)

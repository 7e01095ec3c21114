"""The textbook examples of docs/guide/transactions.md on a whole cluster, and the exact copy."""

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from barnabas import Admin, Consumer, ConsumerRecord, Producer, ProducerRecord, exactly_once
from barnabas.consumer.config import IsolationLevel
from barnabas_common.errors import (
    BarnabasError,
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_transactions import PARTITIONS, TransactionCoordinators, in_cluster

FIRST = PARTITIONS[0]
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "transactions.md"
UNTIL_ABORTED = 20.0
"""Seconds: the timeout of 5 s, and the interval at which the coordinator looks."""


def producer_of(cluster: SimulatedCluster, name: str = "p", **options: object) -> Producer:
    return Producer(
        cluster.bootstrap,
        runtime=cluster.client_runtime(name),
        **{"transactional_id": "copy", "client_id": name, **options},  # type: ignore[arg-type]
    )


async def plainly(cluster: SimulatedCluster, *values: bytes) -> None:
    runtime = cluster.client_runtime("plain")
    async with Producer(cluster.bootstrap, runtime=runtime) as producer:
        for value in values:
            await producer.send_and_wait("orders", value, partition=0)


async def seen(
    cluster: SimulatedCluster,
    isolation: IsolationLevel = "read_committed",
    partitions: Sequence[TopicPartition] = (FIRST,),
) -> list[bytes | None]:
    """What a reader gets up to the end that it can see."""
    found: list[bytes | None] = []
    async with Consumer(
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("reader"),
        auto_offset_reset="earliest",
        isolation_level=isolation,
    ) as consumer:
        consumer.assign(partitions)
        for partition, end in (await consumer.end_offsets(partitions)).items():
            while await consumer.position(partition) < end:
                found += [record.value for record in await consumer.poll(timeout_ms=500)]
    return found


# ---- (1)


def test_three_messages_are_visible_with_the_commit() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with producer_of(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            for value in (b"msg1", b"msg2", b"msg3"):
                await producer.send("orders", value, partition=0)
            await producer.flush()
            assert await seen(cluster) == []
            await producer.commit_transaction()
            await coordinators.settled("copy")
        assert await seen(cluster) == await seen(cluster, "read_uncommitted")
        assert await seen(cluster) == [b"msg1", b"msg2", b"msg3"]

    in_cluster(story)


# ---- (2)


def test_a_program_that_ends_without_close_blocks_readers_until_the_timeout() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        producer = producer_of(cluster, transaction_timeout_ms=5_000)
        with pytest.raises(ValueError):
            try:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send_and_wait("orders", b"msg1", partition=0)
                raise ValueError("before msg2")
            except ProducerFencedError:
                await producer.close()
        # The program is gone: nothing aborts the transaction.
        await plainly(cluster, b"of another")
        assert await seen(cluster) == []
        assert await seen(cluster, "read_uncommitted") == [b"msg1", b"of another"]
        await asyncio.sleep(UNTIL_ABORTED)
        assert await seen(cluster) == [b"of another"]
        assert await seen(cluster, "read_uncommitted") == [b"msg1", b"of another"]

    in_cluster(story)


@pytest.mark.parametrize("way", ["block", "close"])
def test_the_same_program_corrected_blocks_nothing(way: str) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        with pytest.raises(ValueError):
            async with producer_of(cluster) as producer:
                await producer.init_transactions()
                if way == "block":
                    async with producer.transaction():
                        await producer.send_and_wait("orders", b"msg1", partition=0)
                        raise ValueError("before msg2")
                await producer.begin_transaction()
                await producer.send_and_wait("orders", b"msg1", partition=0)
                raise ValueError("before msg2")
        await coordinators.settled("copy")
        await plainly(cluster, b"of another")
        assert await seen(cluster) == [b"of another"]

    in_cluster(story)


# ---- (3)


def test_of_two_producers_the_first_is_fenced_and_can_only_close() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        first, second = producer_of(cluster, "first"), producer_of(cluster, "second")
        await first.init_transactions()
        await first.begin_transaction()
        await first.send_and_wait("orders", b"zombie", partition=0)
        await second.init_transactions()
        async with second.transaction():
            await second.send("orders", b"heir", partition=0)
        with pytest.raises(InvalidProducerEpochError):
            await first.send_and_wait("orders", b"late", partition=0)
        for call in (first.abort_transaction, first.begin_transaction, first.commit_transaction):
            with pytest.raises(ProducerFencedError) as caught:
                await call()
            assert caught.value.fatal
        await first.close()
        async with second.transaction():
            await second.send("orders", b"heir again", partition=0)
        await second.close()
        await coordinators.settled("copy")
        assert await seen(cluster) == [b"heir", b"heir again"]
        everything = await seen(cluster, "read_uncommitted")
        assert everything == [b"zombie", b"heir", b"heir again"]

    in_cluster(story)


def test_the_third_example_is_fenced_as_it_is_printed() -> None:
    """Its transaction had no record: the commit asked nobody, and succeeded."""
    text = GUIDE.read_text().split("**3. Two producers")[1]
    code = text.split("```python\n")[1].split("```")[0]
    awaited = compile(code, str(GUIDE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        made: list[Producer] = []

        def producer(**options: object) -> Producer:
            made.append(producer_of(cluster, **options))  # type: ignore[arg-type]
            return made[-1]

        with pytest.raises(ProducerFencedError) as caught:
            await eval(awaited, {"Producer": producer})
        assert caught.value.fatal
        for each in made:
            await each.close()

    in_cluster(story)


# ---- what else a cluster says


def test_a_timeout_above_the_limit_of_the_brokers() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with producer_of(cluster, transaction_timeout_ms=900_001) as producer:
            with pytest.raises(InvalidTransactionTimeoutError, match="900001"):
                await producer.init_transactions()

    in_cluster(story)


@pytest.mark.parametrize("victim", ["coordinator", "leader"])
def test_transactions_go_on_while_brokers_die(victim: str) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        expected = []
        async with producer_of(cluster) as producer:
            await producer.init_transactions()
            for number in range(6):
                aborted = number % 3 == 2
                await producer.begin_transaction()
                for tp in PARTITIONS:
                    await producer.send("orders", b"%d" % number, partition=tp.partition)
                if number in (1, 3):
                    dead = await coordinators.find_transaction("copy")
                    if victim == "leader":
                        dead = dead % 3 + 1
                    cluster.kill(dead)
                    restart = asyncio.get_running_loop().call_later(
                        15.0, cluster.start_broker, dead
                    )
                    await _end(producer, aborted)
                    while asyncio.get_running_loop().time() < restart.when():
                        await asyncio.sleep(1.0)
                    await cluster.serving()
                else:
                    await _end(producer, aborted)
                expected += [] if aborted else [b"%d" % number] * 3
        await coordinators.settled("copy")
        assert sorted(filter(None, await seen(cluster, partitions=PARTITIONS))) == expected

    in_cluster(story)


async def _end(producer: Producer, aborted: bool) -> None:
    if aborted:
        await producer.abort_transaction()
    else:
        await producer.commit_transaction()


# ---- the exact copy

NUMBERS = 300


async def fill_the_source(cluster: SimulatedCluster) -> None:
    """Commit the numbers, 50 in a transaction, and abort a transaction after each."""
    async with producer_of(cluster, "source", transactional_id="source") as source:
        await source.init_transactions()
        for start in range(0, NUMBERS, 50):
            async with source.transaction():
                for number in range(start, start + 50):
                    await source.send("orders", b"%d" % number, partition=number % 3)
            await source.begin_transaction()
            await source.send("orders", b"never", partition=start % 3)
            await source.flush()
            await source.abort_transaction()


class CrashingCopy:
    """The transformation of all copiers; one call in 97 raises."""

    def __init__(self) -> None:
        self._calls = 0

    async def transform(self, record: ConsumerRecord) -> list[ProducerRecord]:
        self._calls += 1
        await asyncio.sleep(0.01)
        if self._calls % 97 == 96:
            raise RuntimeError("a copier crashes")
        return [ProducerRecord("copies", record.value, partition=record.partition % 2)]


async def copy_once(cluster: SimulatedCluster, name: str, crashing: CrashingCopy) -> None:
    """Copy with new clients, until nothing comes any more."""
    consumer = Consumer(
        "orders",
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime(name),
        group_id="copiers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=20,
        session_timeout_ms=6_000,
    )
    producer = producer_of(cluster, name, transactional_id=name)
    async with consumer, producer:
        await exactly_once(consumer, producer, crashing.transform, idle_ms=20_000)


async def copier(cluster: SimulatedCluster, name: str, crashing: CrashingCopy) -> None:
    """Crash after crash it is started again, under the same transactional id."""
    while True:
        try:
            await copy_once(cluster, name, crashing)
            return
        except (RuntimeError, BarnabasError):
            continue  # a new process, with new clients


async def kill_the_coordinator(
    cluster: SimulatedCluster, coordinators: TransactionCoordinators, transactional_id: str
) -> None:
    """Kill the broker amid the copying, and start it again."""
    await asyncio.sleep(2.0)
    at = await coordinators.find_transaction(transactional_id)
    cluster.kill(at)
    await asyncio.sleep(10.0)
    cluster.start_broker(at)


def test_an_exact_copy_although_copiers_and_a_broker_die() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("copies", partitions=2, replication_factor=3)
        await fill_the_source(cluster)
        crashing = CrashingCopy()
        await asyncio.gather(
            copier(cluster, "one", crashing),
            copier(cluster, "two", crashing),
            kill_the_coordinator(cluster, coordinators, "one"),
        )
        await cluster.serving()
        for name in ("one", "two"):
            await coordinators.settled(name)
        copies = await seen(
            cluster, partitions=[TopicPartition("copies", number) for number in range(2)]
        )
        assert sorted(filter(None, copies)) == sorted(b"%d" % number for number in range(NUMBERS))

    in_cluster(story)


def test_the_loop_refuses_a_consumer_that_reads_what_is_not_committed() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        consumer = Consumer(
            "orders",
            bootstrap_servers=cluster.bootstrap,
            runtime=cluster.client_runtime("c"),
            group_id="g",
            enable_auto_commit=False,
        )
        async with consumer, producer_of(cluster) as producer:
            with pytest.raises(InvalidArgumentError, match="read_committed"):
                await exactly_once(consumer, producer, lambda record: [])

    in_cluster(story)

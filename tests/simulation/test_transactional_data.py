"""Transactions from the first batch to the reader, with raw requests in place of a producer."""

import asyncio

import pytest
from barnabas import Consumer
from barnabas_broker.coordinator.transaction.states import TransactionState, is_decided
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    DescribeProducersRequest,
    TransactionPartition,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from barnabas_common.record.transactional import marker_batch
from barnabas_common.runtime import Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from pyspark_barnabas.options import parse_options
from pyspark_barnabas.reading.range_reader import RangeReader
from pyspark_barnabas.reading.ranges import OffsetRange

from tests.support.raw_transactions import (
    PARTITIONS,
    RawTransaction,
    TransactionCoordinators,
    in_cluster,
)
from tests.support.transactional_data import Sender, ask, described, leader_of, read

E = ErrorCode
FIRST = PARTITIONS[0]


async def begin(
    cluster: SimulatedCluster,
    coordinators: TransactionCoordinators,
    version: int = 0,
    timeout_ms: int = 60_000,
) -> Sender:
    """A producer whose open transaction has one record in each partition."""
    one = RawTransaction(coordinators, version=version, timeout_ms=timeout_ms)
    await one.init()
    sender = Sender(cluster, one)
    await fill(sender)
    return sender


async def fill(sender: Sender, name: bytes = b"") -> None:
    await sender.transaction.add(*PARTITIONS)
    for key in PARTITIONS:
        await sender.produce(key, name + b"%d" % key.partition)


# ---- what readers find


@pytest.mark.parametrize("version", [0, 2])
def test_what_is_committed_is_visible_at_once_and_what_is_aborted_never(version: int) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        sender = await begin(cluster, coordinators, version)
        assert await read(cluster, PARTITIONS) == []
        assert await read(cluster, PARTITIONS, "read_uncommitted") == [b"0", b"1", b"2"]
        assert await sender.transaction.end(commit=True) == E.NONE
        await coordinators.settled("copy")
        assert await read(cluster, PARTITIONS) == [b"0", b"1", b"2"]
        await fill(sender, b"aborted ")
        await sender.transaction.end(commit=False)
        await coordinators.settled("copy")
        await fill(sender, b"later ")
        await sender.transaction.end(commit=True)
        await coordinators.settled("copy")
        committed = sorted([b"0", b"1", b"2", b"later 0", b"later 1", b"later 2"])
        assert await read(cluster, PARTITIONS) == committed
        aborted = [b"aborted 0", b"aborted 1", b"aborted 2"]
        everything = await read(cluster, PARTITIONS, "read_uncommitted")
        assert everything == sorted(committed + aborted)

    in_cluster(story)


def test_a_reader_that_waits_is_woken_by_the_marker() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        sender = await begin(cluster, coordinators)
        async with Consumer(
            bootstrap_servers=cluster.bootstrap,
            runtime=cluster.client_runtime("waiting"),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100_000,
            request_timeout_ms=200_000,
        ) as consumer:
            consumer.assign([FIRST])
            assert await consumer.poll(2000) == []
            loop = asyncio.get_running_loop()
            began = loop.time()
            await sender.transaction.end(commit=True)
            (record,) = await consumer.poll()
            assert record.value == b"0" and loop.time() - began < 5.0

    in_cluster(story)


def test_an_open_transaction_holds_the_last_stable_offset_until_it_times_out() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        await begin(cluster, coordinators, timeout_ms=5000)
        other = RawTransaction(coordinators, name="other")
        await other.init()
        await other.add(FIRST)
        second = Sender(cluster, other)
        await second.produce(FIRST, b"behind")
        await other.end(commit=True)
        await coordinators.settled("other")
        assert described(cluster, FIRST).last_stable_offset == 0
        assert await read(cluster, [FIRST]) == []
        await asyncio.sleep(20.0)
        await coordinators.settled("copy")
        replica = described(cluster, FIRST)
        assert replica.last_stable_offset == replica.high_watermark == replica.log_end_offset
        assert await read(cluster, [FIRST]) == [b"behind"]
        assert await read(cluster, [FIRST], "read_uncommitted") == [b"0", b"behind"]

    in_cluster(story)


def test_spark_reads_what_is_committed() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        sender = await begin(cluster, coordinators)
        await sender.transaction.end(commit=True)
        await coordinators.settled("copy")
        await fill(sender, b"aborted ")
        await sender.transaction.end(commit=False)
        await coordinators.settled("copy")
        planned = OffsetRange(*FIRST, 0, described(cluster, FIRST).last_stable_offset)
        assert planned.end == 4, "two records and two markers"
        given = {"bootstrap.servers": cluster.bootstrap, "subscribe": FIRST.topic}
        found = []
        for level in ({}, {"kafka.isolation.level": "read_committed"}):
            options = parse_options(given | level)
            reader = RangeReader(options, planned, cluster.client_runtime("spark"))
            await reader.open()
            while (table := await reader.next_table()) is not None:
                found += table["value"].to_pylist()
            await reader.close()
        assert found == [b"0", b"aborted 0", b"0"]

    in_cluster(story)


# ---- what is refused


def test_what_a_leader_refuses() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        producer = await one.init()
        sender = Sender(cluster, one)
        batch = sender.batch(FIRST, b"a")
        assert await sender.try_produce(FIRST, batch, "") == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await sender.try_produce(FIRST, batch) == E.TRANSACTION_ABORTABLE, "not added"
        await one.add(FIRST)
        strange = await sender.try_produce(FIRST, batch, "another")
        assert strange in (E.INVALID_PRODUCER_ID_MAPPING, E.NOT_ENOUGH_REPLICAS)
        control = marker_batch(*producer, True, 0, 0)
        assert await sender.try_produce(FIRST, control) == E.INVALID_RECORD
        assert await sender.try_produce(FIRST, batch) == E.NONE
        await one.end(commit=False)
        await coordinators.settled("copy")
        late = sender.batch(FIRST, b"late")
        assert await sender.try_produce(FIRST, late) == E.TRANSACTION_ABORTABLE
        await one.init()
        stale = sender.batch(FIRST, b"new")
        one.producer = producer
        assert await sender.try_produce(FIRST, sender.batch(FIRST, b"zombie")) in (
            E.INVALID_PRODUCER_EPOCH,
        )
        assert await sender.try_produce(FIRST, stale) == E.TRANSACTION_ABORTABLE
        assert await read(cluster, [FIRST]) == []
        replica = described(cluster, FIRST)
        assert replica.last_stable_offset == replica.log_end_offset == 2

    in_cluster(story)


@pytest.mark.parametrize("is_verified", [True, False])
def test_without_verification_a_late_batch_hangs(is_verified: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        sender = await begin(cluster, coordinators)
        late = sender.batch(FIRST, b"late")
        await sender.transaction.end(commit=False)
        await coordinators.settled("copy")
        error = await sender.try_produce(FIRST, late)
        assert error == (E.TRANSACTION_ABORTABLE if is_verified else E.NONE)
        await asyncio.sleep(120.0)
        replica = described(cluster, FIRST)
        hangs = replica.last_stable_offset < replica.high_watermark
        assert hangs == (not is_verified)
        leader = leader_of(cluster, FIRST)
        assert leader is not None
        asked = DescribeProducersRequest([TransactionPartition(*FIRST)])
        (found,) = (await ask(cluster, leader, Service.DATA, asked)).partitions
        (active,) = found.active_producers
        assert active.current_txn_start_offset == (-1 if is_verified else 2)

    in_cluster(story, transaction_partition_verification_enable=str(is_verified).lower())


# ---- what outlives a broker


@pytest.mark.parametrize("commit", [True, False])
def test_another_leader_has_the_open_transaction_and_gets_its_marker(commit: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        sender = await begin(cluster, coordinators)
        leader = leader_of(cluster, FIRST)
        assert leader is not None
        cluster.kill(leader)
        await sender.produce(FIRST, b"more")
        assert described(cluster, FIRST).last_stable_offset == 0
        await sender.transaction.end(commit)
        await coordinators.settled("copy")
        found = [b"0", b"1", b"2", b"more"]
        assert await read(cluster, PARTITIONS) == (found if commit else [])
        assert await read(cluster, PARTITIONS, "read_uncommitted") == found
        cluster.start_broker(leader)
        await asyncio.sleep(30.0)
        for broker_id in cluster.broker_ids:
            log = cluster.broker(broker_id).replica_manager.partitions.hosted(FIRST).log
            assert log is not None
            assert log.last_stable_offset == log.log_end_offset, broker_id
            entries = [e for s in log.segments() for e in s.txn_index.entries()]
            assert len(entries) == (0 if commit else 1)

    in_cluster(story)


def has_reached(cluster: SimulatedCluster, at: int, step: str) -> bool:
    """How far the coordinator at this broker has come with the transaction."""
    transaction = cluster.broker(at).transactions._transactions.get("copy")
    assert transaction is not None
    state, pending = transaction.metadata.state, transaction.pending
    if is_decided(state):
        marked = sum(_ends_with_marker(cluster, key) for key in PARTITIONS)
        return step == {0: "decided", 3: "all markers"}.get(marked, "some markers")
    if pending is not None and is_decided(pending):
        return step == "deciding"
    return step == ("asked" if state is TransactionState.ONGOING else "complete")


def _ends_with_marker(cluster: SimulatedCluster, key: TopicPartition) -> bool:
    leader = leader_of(cluster, key)
    return leader is not None and described(cluster, key).log_end_offset > 1


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("step", ["asked", "deciding", "decided", "some markers", "complete"])
def test_a_coordinator_that_dies_leaves_all_or_nothing(
    step: str, commit: bool, version: int
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        sender = await begin(cluster, coordinators, version)
        at = await coordinators.find_transaction("copy")
        ending = asyncio.create_task(sender.transaction.end(commit))

        async def reach() -> None:
            while not has_reached(cluster, at, step):
                await asyncio.sleep(0.0001)

        async with asyncio.timeout(10.0):
            await reach()
        cluster.kill(at)
        await ending
        await coordinators.settled("copy")
        expected = [b"0", b"1", b"2"]
        assert await read(cluster, PARTITIONS) == (expected if commit else [])
        assert await read(cluster, PARTITIONS, "read_uncommitted") == expected
        await sender.transaction.init()
        await fill(sender, b"next ")
        await sender.transaction.end(commit=True)
        await coordinators.settled("copy")
        following = [b"next 0", b"next 1", b"next 2"]
        assert await read(cluster, PARTITIONS) == (expected if commit else []) + following

    in_cluster(story)


@pytest.mark.parametrize("version", [0, 2])
def test_a_repeated_marker_that_comes_late_ends_the_next_transaction_of_kafka_3_9_only(
    version: int,
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        sender = await begin(cluster, coordinators, version)
        epoch = sender.transaction.producer.epoch
        await sender.transaction.end(commit=False)
        await coordinators.settled("copy")
        await fill(sender, b"next ")
        leader = leader_of(cluster, FIRST)
        assert leader is not None
        late = WritableTxnMarker(
            sender.transaction.producer.producer_id,
            epoch + (version == 2),
            False,
            [TransactionPartition(*FIRST)],
            coordinator_epoch=99,
            transaction_version=version,
        )
        answer = await ask(cluster, leader, Service.REPLICA, WriteTxnMarkersRequest([late]))
        (outcome,) = answer.markers[0].partitions
        assert outcome.error_code == (E.INVALID_PRODUCER_EPOCH if version == 2 else E.NONE)
        assert described(cluster, FIRST).last_stable_offset == (2 if version == 2 else 4)

    in_cluster(story)

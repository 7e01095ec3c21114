"""A compacted topic on a whole cluster: each replica compacts its own log, and logs stay equal."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from barnabas import Admin, ConfigResource, Consumer, Producer
from barnabas.errors import InvalidRecordError
from barnabas_common.events import EventKind
from barnabas_common.record.batch import HEADER_SIZE
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.compacted import KeyedRecord, newest, records_in
from tests.support.replicas import until_replicas

TP = TopicPartition("prices", 0)
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "min.insync.replicas": "2",
    "file.delete.delay.ms": "1000",
}
KEYS = 7


async def create(cluster: SimulatedCluster, **changes: str) -> None:
    configs = SETTINGS | {name.replace("_", "."): value for name, value in changes.items()}
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, partitions=1, replication_factor=3, configs=configs)


async def produce(cluster: SimulatedCluster, numbers: range) -> list[KeyedRecord]:
    """Produce keyed records one after the other; returns those acknowledged."""
    sent: list[KeyedRecord] = []
    async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("producer")) as producer:
        for number in numbers:
            key = b"key-%d" % (number % KEYS)
            value = None if number % 11 == 10 else b"%d" % number
            done = await producer.send_and_wait(TP.topic, value, key=key, partition=0)
            sent.append((done.offset, key, value))
    return sent


async def consume(cluster: SimulatedCluster) -> list[KeyedRecord]:
    records: list[KeyedRecord] = []
    async with Consumer(
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("consumer"),
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([TP])
        end = (await consumer.end_offsets([TP]))[TP]
        while await consumer.position(TP) < end:
            records += [(r.offset, r.key, r.value) for r in await consumer.poll(timeout_ms=500)]
    return records


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.5)


def on_disk(cluster: SimulatedCluster, broker_id: int) -> list[KeyedRecord]:
    log = cluster.broker(broker_id).log_manager.get(TP)
    return [] if log is None else records_in(log)


def passes(cluster: SimulatedCluster, broker_id: int) -> int:
    events = cluster.broker(broker_id).events.since(0)
    return sum(event.kind is EventKind.LOG_COMPACTED for event in events)


def leads(cluster: SimulatedCluster, broker_id: int) -> bool:
    partition = cluster.broker(broker_id).replica_manager.partitions.get(TP)
    return partition is not None and partition.leadership is not None


def left_out(cluster: SimulatedCluster, broker_id: int) -> bool:
    events = cluster.broker(broker_id).events.since(0)
    return any(event.kind is EventKind.LOG_NOT_COMPACTED for event in events)


def has_compacted(cluster: SimulatedCluster, broker_id: int) -> bool:
    return passes(cluster, broker_id) > 0


async def in_sync(cluster: SimulatedCluster) -> None:
    await until_replicas(
        cluster.bootstrap,
        TP,
        lambda found: any(
            one.is_leader and len(one.in_sync_replicas) == 3 for one in found.values()
        ),
        within=120.0,
        runtime=cluster.client_runtime("looker"),
    )


def check(found: list[KeyedRecord], sent: list[KeyedRecord]) -> None:
    """Check that only sent records were found, at their offsets, and the newest of each key."""
    assert set(found) <= set(sent)
    assert set(newest(sent)) <= set(found)
    assert len(found) < len(sent)


@pytest.mark.parametrize("seed", range(3))
def test_every_replica_compacts_and_a_new_one_copies_what_is_left(seed: int) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed)
        await cluster.start()
        await create(cluster)
        sent = await produce(cluster, range(150))
        await until(lambda: all(passes(cluster, one) for one in (1, 2, 3)))
        check(await consume(cluster), sent)
        cluster.kill(2)
        sent += await produce(cluster, range(150, 250))
        cluster.disks[2].wipe()
        cluster.start_broker(2)
        await cluster.serving()
        await in_sync(cluster)
        sent += await produce(cluster, range(250, 300))
        await in_sync(cluster)
        before = passes(cluster, 2)
        await until(lambda: passes(cluster, 2) > before)
        for broker_id in (1, 2, 3):
            check(on_disk(cluster, broker_id), sent)
        check(await consume(cluster), sent)

    run(story(), seed=seed, max_time=1200.0)


@pytest.mark.parametrize("seed", range(3))
def test_leaders_that_lose_power_keep_every_key(seed: int) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed)
        await cluster.start()
        await create(cluster)
        sent: list[KeyedRecord] = []
        for number in range(6):
            sent += await produce(cluster, range(number * 50, (number + 1) * 50))
            victim = 1 + number % 3
            await until(partial(has_compacted, cluster, victim))
            cluster.kill(victim, keep_unflushed=number % 2 == 0)
            sent += await produce(cluster, range(number, number + 20))
            cluster.start_broker(victim)
            await cluster.serving()
            await in_sync(cluster)
        check(await consume(cluster), sent)
        for broker_id in (1, 2, 3):
            check(on_disk(cluster, broker_id), sent)

    run(story(), seed=seed, max_time=2400.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_leaves_out_one_replica_and_no_other(seed: int) -> None:
    """The leader serves all; the replica is neither cut nor taken out of the ISR for it."""

    async def story() -> None:
        cluster = SimulatedCluster(seed, config={"log.cleaner.backoff.ms": "20000"})
        await cluster.start()
        await create(cluster)
        sent = await produce(cluster, range(60))
        victim = next(one for one in (1, 2, 3) if not leads(cluster, one))
        files = cluster.disks[victim].look_into(f"/data/{TP}")
        data = files[min(name for name in files if name.endswith(".log"))].data
        data[HEADER_SIZE + seed] ^= 1 << seed  # in the records of the first batch
        others = [one for one in (1, 2, 3) if one != victim]
        await until(lambda: all(passes(cluster, one) for one in others))
        await until(lambda: left_out(cluster, victim))
        sent += await produce(cluster, range(60, 120))
        before = [passes(cluster, one) for one in others]
        await until(
            lambda: all(passes(cluster, one) > n for one, n in zip(others, before, strict=True))
        )
        assert passes(cluster, victim) == 0
        check(await consume(cluster), sent)
        await in_sync(cluster)

    run(story(), seed=seed, max_time=1200.0)


def test_a_living_topic_becomes_compacted() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(5)
        await cluster.start()
        await create(cluster, cleanup_policy="delete")
        sent = await produce(cluster, range(100))
        assert await consume(cluster) == sent
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.incremental_alter_configs(
                ConfigResource("topic", TP.topic), {"cleanup.policy": "compact"}
            )
        await until(lambda: all(passes(cluster, one) for one in (1, 2, 3)))
        check(await consume(cluster), sent)
        async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("p")) as producer:
            with pytest.raises(InvalidRecordError):
                await producer.send_and_wait(TP.topic, b"no key", partition=0)

    run(story(), seed=5, max_time=600.0)

"""Bytes of a segment change on the disk of one real broker; the others have valid copies."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import CorruptMessageError
from barnabas_common.events import Event, EventKind
from barnabas_common.record.batch import batches
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import (
    create_topic,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.log_files import content, segments, until_sound
from tests.support.real_cluster import real_cluster
from tests.support.workload import read_all
from tests.support.zookeeper_client import broker_epoch, zookeeper

pytestmark = pytest.mark.integration

BATCHES = 40
DAMAGED = 20
CONFIG = {
    "auto.leader.rebalance.enable": "false",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "zookeeper.session.timeout.ms": "2000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with real_cluster(tmp_path, CONFIG) as running:
        yield running


async def _written(cluster: LocalCluster, topic: str, replication_factor: int = 3) -> int:
    """Write one batch for each of the offsets below BATCHES; returns the leader."""
    await create_topic(cluster.bootstrap, topic, 1, replication_factor=replication_factor)
    await _write(cluster, topic, range(BATCHES))
    return (await leaders(cluster.bootstrap, topic))[0]


async def _write(cluster: LocalCluster, topic: str, numbers: range) -> None:
    async with Producer(cluster.bootstrap, linger_ms=0) as producer:
        for number in numbers:
            await producer.send_and_wait(topic, b"value %d" % number, partition=0)


def _folder(cluster: LocalCluster, broker_id: int, topic: str) -> Path:
    return cluster.layout.data_directory(broker_id) / f"{topic}-0"


def _damage(cluster: LocalCluster, broker_id: int, topic: str) -> None:
    """Change a byte of the record at offset DAMAGED in the file that the broker has open."""
    (segment,) = segments(_folder(cluster, broker_id, topic))
    data = segment.read_bytes()
    end = next(p + h.size for p, h in batches(data) if h.last_offset == DAMAGED)
    with segment.open("r+b") as file:
        os.pwrite(file.fileno(), bytes([data[end - 2] ^ 1]), end - 2)


async def _events(cluster: LocalCluster, broker_id: int, kind: EventKind) -> list[Event]:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        answers = await admin.describe_events()
    return [
        event
        for answer in answers
        if answer.broker_id == broker_id
        for event in answer.events
        if event.kind is kind
    ]


async def _all_values(cluster: LocalCluster, topic: str) -> list[bytes]:
    key = TopicPartition(topic, 0)
    return [value for _, value in (await read_all(cluster.bootstrap, [key]))[key]]


async def _sound_copy(cluster: LocalCluster, broker_id: int, other: int, topic: str) -> None:
    """Wait until both brokers' logs have the same bytes."""
    async with asyncio.timeout(20.0):
        while True:
            mended = content(_folder(cluster, broker_id, topic))
            if mended == content(_folder(cluster, other, topic)):
                break
            await asyncio.sleep(0.1)


EXPECTED = [b"value %d" % number for number in range(BATCHES)]


async def test_a_leader_that_finds_damage_hands_over_and_mends_its_log(
    cluster: LocalCluster,
) -> None:
    topic = "rotten"
    leader = await _written(cluster, topic)
    _damage(cluster, leader, topic)
    async with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning(TopicPartition(topic, 0))
        values: list[bytes | None] = []
        async with asyncio.timeout(30.0):
            while len(values) < BATCHES:
                values += [record.value for record in await consumer.poll(timeout_ms=500)]
    assert values == EXPECTED
    await until_not_led_by(cluster.bootstrap, topic, leader)
    await wait_until_in_sync(cluster.bootstrap, topic)
    (event,) = await _events(cluster, leader, EventKind.LOG_DAMAGED)
    assert event.details["offset"] == DAMAGED and "one of them will lead" in event.cause
    (event,) = await _events(cluster, leader, EventKind.LOG_TRUNCATED)
    assert (event.details["rule"], event.details["to_offset"]) == ("damage", DAMAGED)
    assert not await _events(cluster, leader, EventKind.COMMITTED_RECORDS_TRUNCATED), "none is lost"
    await _sound_copy(cluster, leader, (await leaders(cluster.bootstrap, topic))[0], topic)
    assert await _all_values(cluster, topic) == EXPECTED


async def test_a_leader_whose_follower_refuses_what_it_is_sent_hands_over_too(
    cluster: LocalCluster,
) -> None:
    """The follower was down while the batch was written, so that its copy comes from the disk."""
    topic = "sent"
    await create_topic(cluster.bootstrap, topic, 1)
    await _write(cluster, topic, range(DAMAGED - 5))
    leader = (await leaders(cluster.bootstrap, topic))[0]
    follower = leader % 3 + 1
    await asyncio.to_thread(cluster.kill, follower)
    await _write(cluster, topic, range(DAMAGED - 5, BATCHES))
    _damage(cluster, leader, topic)
    await asyncio.to_thread(cluster.restart, follower)
    await until_not_led_by(cluster.bootstrap, topic, leader)
    await wait_until_in_sync(cluster.bootstrap, topic)
    (event,) = await _events(cluster, leader, EventKind.LOG_DAMAGED)
    assert event.details["offset"] == DAMAGED
    await _sound_copy(cluster, leader, follower, topic)
    assert await _all_values(cluster, topic) == EXPECTED


async def test_the_only_member_cuts_nothing_and_its_readers_can_go_past(
    cluster: LocalCluster,
) -> None:
    topic = "alone"
    leader = await _written(cluster, topic, replication_factor=1)
    _damage(cluster, leader, topic)
    before = content(_folder(cluster, leader, topic))
    key = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        consumer.assign([key])
        consumer.seek(key, DAMAGED)
        for _ in range(3):
            with pytest.raises(CorruptMessageError, match=f"in the replica of broker {leader}"):
                await consumer.poll(timeout_ms=5_000)
        consumer.seek(key, DAMAGED + 1)
        values: list[bytes | None] = []
        async with asyncio.timeout(20.0):
            while len(values) < BATCHES - DAMAGED - 1:
                values += [record.value for record in await consumer.poll(timeout_ms=500)]
    assert values == EXPECTED[DAMAGED + 1 :]
    (event,) = await _events(cluster, leader, EventKind.LOG_DAMAGED)
    assert "nothing is truncated" in event.cause
    assert content(_folder(cluster, leader, topic)) == before
    assert (await leaders(cluster.bootstrap, topic))[0] == leader


async def test_damage_found_at_the_start_never_shortens_what_the_others_hold(
    cluster: LocalCluster,
) -> None:
    """The damaged replica returns first, alone, and is a member of the ISR."""
    topic = "restarted"
    broker_id = await _written(cluster, topic)
    await _until_checkpointed(cluster, broker_id, topic)
    await _kill_all_at_once(cluster)
    _damage(cluster, broker_id, topic)
    before = content(_folder(cluster, broker_id, topic))
    await asyncio.to_thread(cluster.start_broker, broker_id, False)
    await _until_refused(cluster, broker_id)
    assert content(_folder(cluster, broker_id, topic)) == before
    await asyncio.to_thread(cluster.start)
    await wait_until_in_sync(cluster.bootstrap, topic)
    (event,) = await _events(cluster, broker_id, EventKind.REPLICA_LOST)
    assert f"damaged at offset {DAMAGED}, below its high watermark {BATCHES}" in event.cause
    assert await _events(cluster, broker_id, EventKind.LOG_RECOVERED)
    await _sound_copy(cluster, broker_id, broker_id % 3 + 1, topic)
    assert await _all_values(cluster, topic) == EXPECTED
    await until_sound(cluster.layout.data_directory(broker_id))


async def test_the_only_member_does_not_cut_at_its_start_either(cluster: LocalCluster) -> None:
    topic = "single"
    broker_id = await _written(cluster, topic, replication_factor=1)
    await _until_checkpointed(cluster, broker_id, topic)
    await asyncio.to_thread(cluster.kill, broker_id)
    _damage(cluster, broker_id, topic)
    before = content(_folder(cluster, broker_id, topic))
    await asyncio.to_thread(cluster.restart, broker_id)
    await _until_refused(cluster, broker_id)
    assert content(_folder(cluster, broker_id, topic)) == before
    assert (await leaders(cluster.bootstrap, topic))[0] == -1


async def _kill_all_at_once(cluster: LocalCluster) -> None:
    """Kill all brokers so that the ISR stays: none sees another die. Wait for their sessions."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for broker_id in cluster.broker_ids:
            await asyncio.to_thread(cluster.signal, broker_id, number)
    async with zookeeper(cluster) as session, asyncio.timeout(30.0):
        for broker_id in cluster.broker_ids:
            while await broker_epoch(session, broker_id) is not None:
                await asyncio.sleep(0.1)


async def _until_checkpointed(cluster: LocalCluster, broker_id: int, topic: str) -> None:
    file = cluster.layout.data_directory(broker_id) / "replication-offset-checkpoint"
    async with asyncio.timeout(20.0):
        while not (file.exists() and f"{topic} 0 {BATCHES}\n" in file.read_text()):
            await asyncio.sleep(0.05)


async def _until_refused(cluster: LocalCluster, broker_id: int) -> None:
    async with asyncio.timeout(30.0):
        while not await _events(cluster, broker_id, EventKind.REPLICA_OFFLINE):
            await asyncio.sleep(0.1)

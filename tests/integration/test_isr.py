"""Followers are paused: the ISR shrinks and grows, and consumers see only replicated records.

A broker is stopped with SIGSTOP. Its ZooKeeper session lasts longer than the pause, so that only
the leader notices, by `replica.lag.time.max.ms`.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from barnabas import Admin, Consumer, Producer, TopicPartition
from barnabas_common.errors import BarnabasError
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import controller_id, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.workload import Workload, read_all

pytestmark = pytest.mark.integration

LAG_SECONDS = 3.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    config = {
        "zookeeper.session.timeout.ms": "30000",
        "replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)),
        "auto.leader.rebalance.enable": "false",
    }
    directory: Path = tmp_path_factory.mktemp("cluster")
    with real_cluster(directory, config) as running:
        yield running


@asynccontextmanager
async def stopped(cluster: LocalCluster, *brokers: int) -> AsyncIterator[None]:
    """Pause these brokers during the block."""
    for broker in brokers:
        cluster.signal(broker, signal.SIGSTOP)
    try:
        yield
    finally:
        for broker in brokers:
            cluster.signal(broker, signal.SIGCONT)


async def led_by_controller(cluster: LocalCluster, topic: str) -> list[int]:
    """Create a topic of one partition, led by the controller's broker; returns the two followers.

    The controller must not be paused, because it writes a new ISR.
    """
    leader = await controller_id(cluster.bootstrap)
    followers = [broker for broker in cluster.broker_ids if broker != leader]
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(
            topic, assignments={0: [leader, *followers]}, configs={"min.insync.replicas": "2"}
        )
    await wait_until_in_sync(cluster.bootstrap, topic)
    return followers


def address_of(cluster: LocalCluster, *brokers: int) -> str:
    return ",".join(f"127.0.0.1:{cluster.layout.ports(broker)[0]}" for broker in brokers)


async def in_sync(bootstrap: str, topic: str) -> list[int]:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        return sorted((await admin.describe_topic(topic)).partitions[0].in_sync_replicas)


async def until_in_sync_are(bootstrap: str, topic: str, members: list[int]) -> None:
    async with asyncio.timeout(5 * LAG_SECONDS):
        while await in_sync(bootstrap, topic) != sorted(members):
            await asyncio.sleep(0.1)


async def test_one_follower_stands_still_and_acks_all_goes_on(cluster: LocalCluster) -> None:
    topic = "one-stands-still"
    first, second = await led_by_controller(cluster, topic)
    leader = await controller_id(cluster.bootstrap)
    running_brokers = address_of(cluster, leader, second)
    async with Workload(topic, 1, running_brokers) as workload:
        await workload.acked_in_every_partition(50)
        async with stopped(cluster, first):
            await until_in_sync_are(running_brokers, topic, [leader, second])
            await workload.acked_in_every_partition(50)
        await wait_until_in_sync(running_brokers, topic)
        await workload.acked_in_every_partition(50)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()


async def test_two_followers_stand_still_and_producers_are_told(cluster: LocalCluster) -> None:
    topic = "two-stand-still"
    followers = await led_by_controller(cluster, topic)
    leader = await controller_id(cluster.bootstrap)
    running_brokers = address_of(cluster, leader)
    tp = TopicPartition(topic, 0)
    async with Producer(running_brokers) as producer:
        for number in range(50):
            await producer.send_and_wait(topic, b"before %d" % number, partition=0)
    async with stopped(cluster, *followers):
        # A replica that has every record keeps its place: only a new record shows that one is
        # behind.
        async with Producer(running_brokers, acks=1) as producer:
            await producer.send_and_wait(topic, b"to be behind of", partition=0)
        await until_in_sync_are(running_brokers, topic, [leader])
        async with Producer(running_brokers, retries=2) as producer:
            handle = await producer.send(topic, b"never written", partition=0)
            with pytest.raises(BarnabasError, match="NOT_ENOUGH_REPLICAS"):
                await handle
    await wait_until_in_sync(running_brokers, topic)
    async with Producer(running_brokers) as producer:
        await producer.send_and_wait(topic, b"after", partition=0)
    values = [value for _, value in (await read_all(running_brokers, [tp]))[tp]]
    before = [b"before %d" % number for number in range(50)]
    assert values == [*before, b"to be behind of", b"after"]


async def test_consumers_see_nothing_above_the_high_watermark(cluster: LocalCluster) -> None:
    topic = "unseen"
    followers = await led_by_controller(cluster, topic)
    leader = await controller_id(cluster.bootstrap)
    running_brokers = address_of(cluster, leader)
    tp = TopicPartition(topic, 0)
    async with Producer(running_brokers) as producer:
        await producer.send_and_wait(topic, b"committed", partition=0)
    async with (
        Consumer(bootstrap_servers=running_brokers, auto_offset_reset="earliest") as consumer,
        Producer(running_brokers, acks=1) as producer,
    ):
        consumer.assign([tp])
        assert [r.value for r in await consumer.poll(timeout_ms=10_000)] == [b"committed"]
        async with stopped(cluster, *followers):
            metadata = await producer.send_and_wait(topic, b"on the leader alone", partition=0)
            assert metadata.offset == 1
            assert await offsets_of_leader(running_brokers, topic, leader) == (1, 2)
            assert await consumer.poll(timeout_ms=500) == []
            assert await consumer.end_offsets([tp]) == {tp: 1}
            # Not even when the leader is alone in the ISR: min.insync.replicas is 2.
            await until_in_sync_are(running_brokers, topic, [leader])
            assert await consumer.poll(timeout_ms=500) == []
            assert await offsets_of_leader(running_brokers, topic, leader) == (1, 2)
        records = await consumer.poll(timeout_ms=20_000)
        assert [record.value for record in records] == [b"on the leader alone"]
    await wait_until_in_sync(running_brokers, topic)


async def offsets_of_leader(bootstrap: str, topic: str, leader: int) -> tuple[int, int]:
    """Return the leader's high watermark and log end offset."""
    from barnabas_common.messages.replicas import DescribeReplicasRequest
    from barnabas_common.runtime import Address, Service

    from tests.support.raw import call

    response = await call(Address.parse(bootstrap), Service.ADMIN, DescribeReplicasRequest([topic]))
    (replica,) = response.replicas
    return replica.high_watermark, replica.log_end_offset

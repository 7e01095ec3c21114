"""A partition that has had no leader yet, or whose state is malformed, is a partition all the same.

A client that knew of fewer partitions would send the records of a key elsewhere, and their order
would be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas.errors import DeliveryTimeoutError, RequestTimedOutError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.record.murmur2 import partition_for_key
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

KEYS = [b"key %d" % number for number in range(12)]
AWAY = 2
Test = Callable[[SimulatedCluster], Awaitable[None]]


def in_a_cluster(test: Test) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1)
        await cluster.start()
        await test(cluster)

    run(story(), seed=1, max_time=600)


async def create(cluster: SimulatedCluster, without_leader: int) -> None:
    """A topic of three partitions, one of them on a broker that is away."""
    brokers = iter((1, 3))
    replicas = {n: [AWAY if n == without_leader else next(brokers)] for n in range(3)}
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        with pytest.raises(RequestTimedOutError):
            await admin.create_topic("t", assignments=replicas, timeout_ms=2000)


async def described(cluster: SimulatedCluster) -> list[tuple[int, int, int]]:
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        topic = await admin.describe_topic("t")
    return [(p.partition, p.leader_id, p.error_code) for p in topic.partitions]


async def places(cluster: SimulatedCluster) -> dict[bytes, int]:
    """Where the records of each key are acknowledged; keys without a leader are left out."""
    runtime = cluster.client_runtime("producer")
    found = {}
    async with Producer(
        cluster.bootstrap, runtime=runtime, delivery_timeout_ms=3000, request_timeout_ms=2000
    ) as producer:
        handles = {key: await producer.send("t", b"", key=key) for key in KEYS}
        for key, handle in handles.items():
            with suppress(DeliveryTimeoutError):
                found[key] = (await handle).partition
    return found


@pytest.mark.parametrize("without_leader", range(3))
def test_a_partition_without_a_first_leader_counts(without_leader: int) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        cluster.kill(AWAY)
        await create(cluster, without_leader)
        expected = {key: partition_for_key(key, 3) for key in KEYS}
        for restart in (None, 1, 3):  # also for a new controller, and a broker that learns of it
            if restart is not None:
                cluster.kill(restart)
                await asyncio.sleep(10)
                cluster.start_broker(restart)
                await cluster.serving()
                await asyncio.sleep(5)
            assert (without_leader, -1, ErrorCode.LEADER_NOT_AVAILABLE) in await described(cluster)
            served = {key: p for key, p in expected.items() if p != without_leader}
            assert await places(cluster) == served
        cluster.start_broker(AWAY)
        await cluster.serving()
        await asyncio.sleep(5)
        assert await places(cluster) == expected

    in_a_cluster(test)


def test_a_group_reads_it_as_soon_as_it_has_a_leader() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        cluster.kill(AWAY)
        await create(cluster, 1)
        runtime = cluster.client_runtime("consumer")
        async with Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            runtime=runtime,
        ) as consumer:
            await consumer.poll(5000)
            assert set(consumer.assignment()) == {TopicPartition("t", n) for n in range(3)}
            cluster.start_broker(AWAY)
            await cluster.serving()
            await asyncio.sleep(5)
            await places(cluster)
            read = set()
            async with asyncio.timeout(60):
                while read != set(KEYS):
                    read |= {record.key for record in await consumer.poll(1000)}

    in_a_cluster(test)


def test_a_partition_with_a_malformed_state_counts_after_all_brokers_have_restarted() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("t", assignments={0: [1], 1: [2], 2: [3]})
        path = znodes.state_path(TopicPartition("t", 2))
        node = cluster.zookeeper.tree.find(path)
        assert node is not None
        good = node.data
        cluster.zookeeper.put(path, b"not a state")
        expected = {key: partition_for_key(key, 3) for key in KEYS}
        assert await places(cluster) == expected, "the brokers know the state that it had"
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await asyncio.sleep(5)
        assert (2, -1, ErrorCode.LEADER_NOT_AVAILABLE) in await described(cluster)
        assert await places(cluster) == {key: p for key, p in expected.items() if p != 2}
        cluster.zookeeper.put(path, good)
        await asyncio.sleep(5)
        assert await places(cluster) == expected

    in_a_cluster(test)

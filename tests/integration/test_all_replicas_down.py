"""All replicas are down, with real processes: wait for a complete one, or take the first.

By default the partition waits for the replica that has everything. With
`unclean.leader.election.enable` the first that returns leads, and the records it lacks are lost.
"""

import asyncio
from contextlib import suppress

import pytest
from barnabas import Admin, ConfigResource, Consumer, Producer, TopicPartition
from barnabas_common.errors import UnknownTopicOrPartitionError
from barnabas_tools.local.cluster import LocalCluster

pytestmark = pytest.mark.integration


async def produce(bootstrap: str, topic: str, numbers: range) -> None:
    """Produce each number as a record, acknowledged by all in-sync replicas."""
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            await producer.send_and_wait(topic, b"%d" % number, partition=0)


async def read_back(bootstrap: str, topic: str) -> list[int]:
    partition = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        found: list[int] = []
        while await consumer.position(partition) < end:
            found += [int(record.value) for record in await consumer.poll(timeout_ms=500)]
        return found


async def led_by(bootstrap: str, topic: str, broker_id: int) -> None:
    """Wait until a broker leads. One that has just started knows no topic before UpdateMetadata."""
    async with asyncio.timeout(30), Admin(bootstrap_servers=bootstrap) as admin:
        while True:
            with suppress(UnknownTopicOrPartitionError):
                if (await admin.describe_topic(topic)).partitions[0].leader_id == broker_id:
                    return
            await asyncio.sleep(0.05)


async def only_2_is_back(cluster: LocalCluster, topic: str) -> None:
    """Only broker 2 runs. Broker 1, the last to die, alone has the records 20 to 39."""
    bootstrap = cluster.bootstrap
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic(
            topic, assignments={0: [1, 2, 3]}, configs={"min.insync.replicas": "1"}
        )
    await produce(bootstrap, topic, range(20))
    for follower in (2, 3):
        await asyncio.to_thread(cluster.kill, follower)
    await produce(bootstrap, topic, range(20, 40))
    await asyncio.to_thread(cluster.kill, 1)
    await asyncio.to_thread(cluster.restart, 2)
    await led_by(bootstrap, topic, -1)


async def test_by_default_the_partition_waits_for_a_member_of_the_isr(
    cluster: LocalCluster,
) -> None:
    topic = "waits"
    await only_2_is_back(cluster, topic)
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        for _ in range(30):  # for longer than a session lasts
            partition = (await admin.describe_topic(topic)).partitions[0]
            assert (partition.leader_id, partition.in_sync_replicas) == (-1, [1])
            await asyncio.sleep(0.1)
    await asyncio.to_thread(cluster.restart, 1)
    await led_by(cluster.bootstrap, topic, 1)
    assert await read_back(cluster.bootstrap, topic) == list(range(40))
    await asyncio.to_thread(cluster.restart, 3)


@pytest.mark.parametrize("way", ["setting", "request"])
async def test_an_unclean_election_takes_the_first_that_returned(
    cluster: LocalCluster, way: str
) -> None:
    topic = f"takes-{way}"
    await only_2_is_back(cluster, topic)
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        if way == "setting":
            changes: dict[str, str | None] = {"unclean.leader.election.enable": "true"}
            await admin.incremental_alter_configs(ConfigResource.topic(topic), changes)
        else:
            partition = TopicPartition(topic, 0)
            assert await admin.elect_leaders("unclean", [partition]) == {partition: None}
    await led_by(cluster.bootstrap, topic, 2)
    assert await read_back(cluster.bootstrap, topic) == list(range(20)), "the rest is lost"
    for other in (1, 3):
        await asyncio.to_thread(cluster.restart, other)
    await produce(cluster.bootstrap, topic, range(100, 110))
    assert await read_back(cluster.bootstrap, topic) == [*range(20), *range(100, 110)]

"""kill -9 of real broker processes under load: every acknowledged record is there afterwards.

Each test checks every acknowledged record by value, at its offset, in order.
"""

import asyncio
import signal

import pytest
from barnabas_common.errors import InvalidReplicationFactorError
from barnabas_controller.zookeeper.session import Session
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import (
    choose,
    create_topic,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.workload import Workload
from tests.support.zookeeper_client import broker_epoch, zookeeper

pytestmark = pytest.mark.integration

PARTITIONS = 6
SESSION_SECONDS = 2.0


@pytest.mark.parametrize("victim", ["leader", "follower", "controller"])
async def test_kill_one_broker_under_load(cluster: LocalCluster, victim: str) -> None:
    topic = f"kill-{victim}"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        broker = await choose(cluster.bootstrap, topic, victim)
        await asyncio.to_thread(cluster.kill, broker)
        await workload.acked_in_every_partition(20, within=SESSION_SECONDS + 20)
        await asyncio.to_thread(cluster.restart, broker)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.acked_in_every_partition(20)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()


async def test_kill_all_brokers_under_load(cluster: LocalCluster) -> None:
    topic = "kill-all"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        for broker in (1, 2, 3):
            await asyncio.to_thread(cluster.kill, broker)
        for broker in (1, 2, 3):
            await asyncio.to_thread(cluster.restart, broker)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.acked_in_every_partition(20)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()


@pytest.mark.parametrize("sleeper", ["leader", "controller"])
async def test_a_broker_sleeps_past_its_session_under_load(
    cluster: LocalCluster, sleeper: str
) -> None:
    """It resumes as if it still led; no record that it appends then may be acknowledged."""
    topic = f"sleep-{sleeper}"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        broker = await choose(cluster.bootstrap, topic, sleeper)
        cluster.signal(broker, signal.SIGSTOP)
        try:
            async with zookeeper(cluster) as session:
                await _until_session_is_over(session, broker)
            await workload.acked_in_every_partition(20)
        finally:
            cluster.signal(broker, signal.SIGCONT)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.acked_in_every_partition(20)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()


async def test_zookeeper_is_killed_under_load(cluster: LocalCluster) -> None:
    """Records continue to flow without it; everything else works again when it is back."""
    topic = "without-zookeeper"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    pids = [cluster.pid(broker) for broker in cluster.broker_ids]
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        process = cluster.zookeeper.process
        assert process is not None
        process.kill()
        await workload.acked_in_every_partition(500)
        await asyncio.to_thread(cluster.start)
        await _create_once_all_are_registered(cluster.bootstrap, "after-zookeeper-came-back")
        await wait_until_in_sync(cluster.bootstrap, "after-zookeeper-came-back")
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.acked_in_every_partition(20)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()
    assert [cluster.pid(broker) for broker in cluster.broker_ids] == pids


async def _create_once_all_are_registered(bootstrap: str, topic: str) -> None:
    """Create a topic as soon as all brokers are registered; one may have to register again."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await create_topic(bootstrap, topic, 1)
            except InvalidReplicationFactorError:
                await asyncio.sleep(0.1)


async def _until_session_is_over(session: Session, broker_id: int) -> None:
    async with asyncio.timeout(30):
        while await broker_epoch(session, broker_id) is not None:
            await asyncio.sleep(0.1)


async def test_stop_a_broker_cleanly_under_load_raises_nothing(cluster: LocalCluster) -> None:
    topic = "clean-stop"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        leader = (await leaders(cluster.bootstrap, topic))[0]
        await asyncio.to_thread(cluster.stop_broker, leader)
        await until_not_led_by(cluster.bootstrap, topic, leader)
        await workload.acked_in_every_partition(20)
        await asyncio.to_thread(cluster.restart, leader)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()


async def test_stop_and_start_of_the_whole_cluster_keeps_topics_and_records(
    cluster: LocalCluster,
) -> None:
    topic = "stop-start"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        await workload.stop()
        await asyncio.to_thread(cluster.stop)
        await asyncio.to_thread(cluster.start)
        await wait_until_in_sync(cluster.bootstrap, topic)
        (await workload.verdict()).assert_good()

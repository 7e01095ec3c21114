"""Failure detection with real processes: a death is noticed immediately, a pause is not one.

The ZooKeeper session lasts 18 s, so a recovery within 10 s was caused by a suspicion. Each test
checks every acknowledged record by value, at its offset, in order.
"""

import asyncio
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas import Admin
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import (
    choose,
    controller_id,
    create_topic,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.real_cluster import real_cluster
from tests.support.stalled_thread import main_thread_held
from tests.support.workload import Workload
from tests.support.zookeeper_client import broker_epoch, zookeeper

pytestmark = pytest.mark.integration

PARTITIONS = 6
SESSION_SECONDS = 18.0
# A session ends at least 12 s after its broker's death, because a heartbeat is sent every 6 s. The
# recovery itself takes a moment, but other tests share the machine.
SOON = 10.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    config = {"zookeeper.session.timeout.ms": "18000", "auto.leader.rebalance.enable": "false"}
    with real_cluster(tmp_path_factory.mktemp("cluster"), config) as running:
        yield running


@pytest.fixture(scope="module")
def watched_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster whose sessions are so short that a test can stall a loop for longer."""
    directory: Path = tmp_path_factory.mktemp("watched")
    with real_cluster(directory, {"zookeeper.session.timeout.ms": "4000"}) as running:
        yield running


@pytest.mark.parametrize("victim", ["leader", "follower", "controller"])
async def test_a_killed_broker_is_replaced_long_before_its_session_ends(
    cluster: LocalCluster, victim: str
) -> None:
    topic = f"killed-{victim}"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        broker = await choose(cluster.bootstrap, topic, victim)
        await asyncio.to_thread(cluster.kill, broker)
        await workload.acked_in_every_partition(20, within=SOON)
        async with zookeeper(cluster) as session:
            assert await broker_epoch(session, broker) is not None, "its session still lives"
        await until_not_led_by(cluster.bootstrap, topic, broker, within=SOON)
        await asyncio.to_thread(cluster.restart, broker)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()


@pytest.mark.parametrize("victim", ["leader", "controller"])
async def test_a_broker_told_to_stop_is_replaced_at_once_and_nothing_is_raised(
    cluster: LocalCluster, victim: str
) -> None:
    topic = f"stopped-{victim}"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        broker = await choose(cluster.bootstrap, topic, victim)
        await asyncio.to_thread(cluster.stop_broker, broker)
        await workload.acked_in_every_partition(20, within=SOON)
        await asyncio.to_thread(cluster.restart, broker)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()


@pytest.mark.parametrize("victim", ["leader", "follower", "controller"])
async def test_a_pause_of_a_second_is_no_evidence(cluster: LocalCluster, victim: str) -> None:
    topic = f"paused-{victim}"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    before, suspected_before = await epochs(cluster.bootstrap, topic), suspicions(cluster)
    controller = await controller_id(cluster.bootstrap)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        broker = await choose(cluster.bootstrap, topic, victim)
        for _ in range(2):
            cluster.signal(broker, signal.SIGSTOP)
            await asyncio.sleep(1.0)  # the length of the pause is the fault
            cluster.signal(broker, signal.SIGCONT)
            await workload.acked_in_every_partition(20)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()
    assert await epochs(cluster.bootstrap, topic) == before
    assert await controller_id(cluster.bootstrap) == controller
    assert suspicions(cluster) == suspected_before


async def test_a_stalled_event_loop_gives_its_session_up_and_joins_again(
    watched_cluster: LocalCluster,
) -> None:
    """Its other threads run, kazoo's heartbeats included: only the watchdog can end the session."""
    cluster, topic = watched_cluster, "stalled"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    # Requests in flight to the stalled broker get no answer, and their connection stays open.
    async with Workload(topic, PARTITIONS, cluster.bootstrap, request_timeout_ms=2000) as workload:
        await workload.acked_in_every_partition(20)
        broker = (await leaders(cluster.bootstrap, topic))[0]
        pid = cluster.pid(broker)
        assert pid is not None
        async with zookeeper(cluster) as session:
            first_epoch = await broker_epoch(session, broker)
            with main_thread_held(pid):
                began = time.monotonic()
                async with asyncio.timeout(4.0 + SOON):
                    while await broker_epoch(session, broker) is not None:
                        await asyncio.sleep(0.05)
                assert time.monotonic() - began > 1.5, "a pause of a second is too short for it"
                await workload.acked_in_every_partition(20, within=SOON)
            async with asyncio.timeout(SOON):
                while (await broker_epoch(session, broker)) in (None, first_epoch):
                    await asyncio.sleep(0.05)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()
    assert cluster.pid(broker) == pid


async def epochs(bootstrap: str, topic: str) -> list[tuple[int, int]]:
    """Return leader and leader epoch of each partition."""
    async with Admin(bootstrap_servers=bootstrap) as admin:
        description = await admin.describe_topic(topic)
    return [(p.leader_id, p.leader_epoch) for p in description.partitions]


def suspicions(cluster: LocalCluster) -> dict[int, int]:
    """Return how often each broker has suspected another."""
    logs = {b: cluster.broker(b).log_file.read_text() for b in cluster.broker_ids}
    return {b: len(re.findall(r"broker-suspected|controller-deposed", logs[b])) for b in logs}

"""ZooKeeper's data folder is replaced by an older copy: all report it, a restart loses nothing."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.zookeeper_server import EmbeddedZooKeeper

from tests.support.cluster_state import (
    create_topic,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.real_cluster import real_cluster
from tests.support.workload import Workload

pytestmark = pytest.mark.integration

TOPIC = "restored"
BEHIND = "zookeeper-behind"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with real_cluster(tmp_path, {"zookeeper.session.timeout.ms": "2000"}) as running:
        yield running


async def kill_the_leader(cluster: LocalCluster) -> None:
    victim = (await leaders(cluster.bootstrap, TOPIC))[0]
    await asyncio.to_thread(cluster.kill, victim)
    await until_not_led_by(cluster.bootstrap, TOPIC, victim)
    await asyncio.to_thread(cluster.start_broker, victim)
    await wait_until_in_sync(cluster.bootstrap, TOPIC)


async def until_reported(cluster: LocalCluster) -> None:
    async with asyncio.timeout(60):
        for broker_id in cluster.broker_ids:
            log = cluster.broker(broker_id).log_file
            while BEHIND not in log.read_text(errors="replace"):
                await asyncio.sleep(0.1)
            line = next(n for n in log.read_text(errors="replace").splitlines() if BEHIND in n)
            assert "ERROR" in line and "restarting every broker" in line


async def test_an_older_copy_is_named_by_every_broker_and_served_after_a_restart(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    await create_topic(cluster.bootstrap, TOPIC, 2)
    await wait_until_in_sync(cluster.bootstrap, TOPIC)
    layout = cluster.layout
    server = EmbeddedZooKeeper(layout.zookeeper_directory, layout.zookeeper_port)
    data, copy = layout.zookeeper_directory / "data", tmp_path / "copy"
    async with Workload(TOPIC, 2, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        await asyncio.to_thread(server.stop)
        shutil.copytree(data, copy)
        await asyncio.to_thread(server.start)
        for _ in range(2):
            await kill_the_leader(cluster)
            await workload.acked_in_every_partition(50)
        await workload.stop()
        await asyncio.to_thread(server.stop)
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        await asyncio.to_thread(server.start)
        await until_reported(cluster)
        for broker_id in cluster.broker_ids:  # the operator's deliberate step
            await asyncio.to_thread(cluster.restart, broker_id, False)
        await asyncio.to_thread(cluster.start)
        await wait_until_in_sync(cluster.bootstrap, TOPIC)
        (await workload.verdict()).assert_good()
    async with Workload(TOPIC, 2, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        await kill_the_leader(cluster)
        await workload.acked_in_every_partition(50)

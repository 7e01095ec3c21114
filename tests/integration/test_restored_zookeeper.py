"""ZooKeeper's data folder is replaced by an older copy: all report it, a restart loses nothing.

That holds too if the copy names a member of the ISR that has left it since, and that broker is the
first to start.
"""

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
    settings = {"zookeeper.session.timeout.ms": "2000", "log.dir.stamp.interval.ms": "200"}
    with real_cluster(tmp_path, settings) as running:
        yield running


async def kill_the_leader(cluster: LocalCluster) -> None:
    victim = (await leaders(cluster.bootstrap, TOPIC))[0]
    await asyncio.to_thread(cluster.kill, victim)
    await until_not_led_by(cluster.bootstrap, TOPIC, victim)
    await asyncio.to_thread(cluster.start_broker, victim)
    await wait_until_in_sync(cluster.bootstrap, TOPIC)


def stamp(cluster: LocalCluster, broker_id: int) -> int:
    return int((cluster.layout.data_directory(broker_id) / ".barnabas_stamp").read_text())


async def until_stamped(cluster: LocalCluster, times: int) -> None:
    """Wait until each broker has renewed the stamp of its data directory so often."""
    before = {broker_id: stamp(cluster, broker_id) for broker_id in cluster.broker_ids}
    async with asyncio.timeout(30):
        while any(stamp(cluster, b) < before[b] + times for b in cluster.broker_ids):
            await asyncio.sleep(0.1)


async def until_reported(cluster: LocalCluster) -> None:
    async with asyncio.timeout(60):
        for broker_id in cluster.broker_ids:
            log = cluster.broker(broker_id).log_file
            while BEHIND not in log.read_text(errors="replace"):
                await asyncio.sleep(0.1)
            line = next(n for n in log.read_text(errors="replace").splitlines() if BEHIND in n)
            assert "ERROR" in line and "restarting every broker" in line


class Copy:
    """A copy of ZooKeeper's data folder, taken and put back while ZooKeeper is stopped."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        layout = cluster.layout
        self._server = EmbeddedZooKeeper(layout.zookeeper_directory, layout.zookeeper_port)
        self._data, self._copy = layout.zookeeper_directory / "data", folder

    async def take(self) -> None:
        await asyncio.to_thread(self._server.stop)
        shutil.copytree(self._data, self._copy)
        await asyncio.to_thread(self._server.start)

    async def put_back(self) -> None:
        await asyncio.to_thread(self._server.stop)
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        await asyncio.to_thread(self._server.start)


async def test_an_older_copy_is_named_by_every_broker_and_served_after_a_restart(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    await create_topic(cluster.bootstrap, TOPIC, 2)
    await wait_until_in_sync(cluster.bootstrap, TOPIC)
    copy = Copy(cluster, tmp_path / "copy")
    async with Workload(TOPIC, 2, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        await copy.take()
        for _ in range(2):
            await kill_the_leader(cluster)
            await workload.acked_in_every_partition(50)
        await workload.stop()
        await copy.put_back()
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


@pytest.mark.parametrize("led", [True, False], ids=["it led", "it followed"])
async def test_a_broker_that_was_away_since_the_copy_does_not_lead_without_the_records(
    cluster: LocalCluster, tmp_path: Path, led: bool
) -> None:
    await create_topic(cluster.bootstrap, TOPIC, 1)
    await wait_until_in_sync(cluster.bootstrap, TOPIC)
    copy = Copy(cluster, tmp_path / "copy")
    async with Workload(TOPIC, 1, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        await copy.take()
        await until_stamped(cluster, times=3)
        leader = (await leaders(cluster.bootstrap, TOPIC))[0]
        absent = next(b for b in cluster.broker_ids if (b == leader) == led)
        await asyncio.to_thread(cluster.kill, absent)
        await workload.acked_in_every_partition(200)
        await workload.stop()
        await copy.put_back()
        others = [broker_id for broker_id in cluster.broker_ids if broker_id != absent]
        for broker_id in others:
            await asyncio.to_thread(cluster.kill, broker_id)
        for broker_id in [absent, *others]:
            await asyncio.to_thread(cluster.start_broker, broker_id)
        await wait_until_in_sync(cluster.bootstrap, TOPIC)
        (await workload.verdict()).assert_good()

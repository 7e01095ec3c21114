"""A data directory is replaced by a copy of itself taken earlier: nothing acknowledged is lost."""

import asyncio
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas import Admin
from barnabas_common.events import EventKind
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic, leaders, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.workload import Workload

pytestmark = pytest.mark.integration

TOPIC = "older"
STAMP = ".barnabas_stamp"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    config = {"zookeeper.session.timeout.ms": "2000", "log.dir.stamp.interval.ms": "200"}
    with real_cluster(tmp_path, config) as running:
        yield running


async def until_stamped(cluster: LocalCluster, broker_id: int, beyond: int) -> None:
    async with asyncio.timeout(20):
        while stamp(cluster, broker_id) <= beyond:
            await asyncio.sleep(0.02)


def stamp(cluster: LocalCluster, broker_id: int) -> int:
    return int((cluster.layout.data_directory(broker_id) / STAMP).read_text())


async def test_an_older_copy_put_back_after_all_were_killed_loses_nothing(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    await create_topic(cluster.bootstrap, TOPIC, 1)
    await wait_until_in_sync(cluster.bootstrap, TOPIC)
    victim = (await leaders(cluster.bootstrap, TOPIC))[0]
    data, copy = cluster.layout.data_directory(victim), tmp_path / "copy"
    async with Workload(TOPIC, 1, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        cluster.signal(victim, signal.SIGSTOP)  # no file goes away during the copy
        try:
            shutil.copytree(data, copy)
        finally:
            cluster.signal(victim, signal.SIGCONT)
        copied = int((copy / STAMP).read_text())
        await workload.acked_in_every_partition(500)
        await until_stamped(cluster, victim, copied)
        await workload.stop()
        for broker_id in cluster.broker_ids:
            await asyncio.to_thread(cluster.kill, broker_id)
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        # It is alone for a while: the others must not truncate to its log.
        await asyncio.to_thread(cluster.start_broker, victim, False)
        await until_stamped(cluster, victim, copied + 3)
        await asyncio.to_thread(cluster.start)
        await wait_until_in_sync(cluster.bootstrap, TOPIC)
        (await workload.verdict()).assert_good()
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        (answer,) = [a for a in await admin.describe_events() if a.broker_id == victim]
    causes = [e.cause for e in answer.events if e.kind is EventKind.LOG_DIRECTORY_OUTDATED]
    assert len(causes) == 1 and "is an older copy" in causes[0]


async def test_no_one_is_accused_after_ordinary_stops_and_kills(cluster: LocalCluster) -> None:
    await create_topic(cluster.bootstrap, "ordinary", 1)
    await asyncio.to_thread(cluster.kill_all)
    await asyncio.to_thread(cluster.start)
    await asyncio.to_thread(cluster.restart, 2)
    await wait_until_in_sync(cluster.bootstrap, "ordinary")
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        answers = await admin.describe_events()
    kinds = [event.kind for answer in answers for event in answer.events]
    assert EventKind.LOG_DIRECTORY_OUTDATED not in kinds

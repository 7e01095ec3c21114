"""Real brokers that return to damaged directories: a missing folder, overwritten checkpoints."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas import Admin
from barnabas_common.events import EventKind
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.workload import Workload

pytestmark = pytest.mark.integration

PARTITIONS = 3
OFFSET_FILES = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    config = {
        "zookeeper.session.timeout.ms": "2000",
        "replica.high.watermark.checkpoint.interval.ms": "200",
    }
    with real_cluster(tmp_path, config) as running:
        yield running


async def test_after_all_were_killed_a_lost_folder_and_damaged_files_cost_no_record(
    cluster: LocalCluster,
) -> None:
    topic = "lost"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        await workload.stop()
        checkpoints = [cluster.layout.data_directory(b) / OFFSET_FILES[0] for b in (1, 2)]
        async with asyncio.timeout(20.0):
            while not all(
                file.exists() and f"{topic} 0" in file.read_text() for file in checkpoints
            ):
                await asyncio.sleep(0.05)
        await asyncio.to_thread(cluster.kill_all)
        # Broker 1 leads partition 0 or follows it; either way it is still in the ISR.
        shutil.rmtree(cluster.layout.data_directory(1) / f"{topic}-0")
        _scribble(cluster.layout.data_directory(2), topic)
        await asyncio.to_thread(cluster.start)
        await wait_until_in_sync(cluster.bootstrap, topic)
        (await workload.verdict()).assert_good()
    told = await _causes(cluster)
    assert any("its folder is missing" in cause for cause in told[1, EventKind.REPLICA_LOST])
    assert len(told[2, EventKind.CHECKPOINT_DAMAGED]) >= PARTITIONS + 1


def _scribble(data: Path, topic: str) -> None:
    """Damage every checkpoint: shorten those of offsets, overwrite those of epochs."""
    for name in OFFSET_FILES:
        file = data / name
        if file.exists():
            file.write_bytes(file.read_bytes()[:-4])
    for partition in range(PARTITIONS):
        (data / f"{topic}-{partition}" / "leader-epoch-checkpoint").write_bytes(b"\0" * 40)


async def _causes(cluster: LocalCluster) -> dict[tuple[int, EventKind], list[str]]:
    causes: dict[tuple[int, EventKind], list[str]] = {}
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        for answer in await admin.describe_events():
            for event in answer.events:
                causes.setdefault((answer.broker_id, event.kind), []).append(event.cause)
    return causes

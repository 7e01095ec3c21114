"""A full disk and a disk that becomes read-only, under one broker of three, under load.

The broker whose only data directory has failed stops with one line, and the others continue.
Nothing that was acknowledged is lost. Once the disk is repaired the broker joins the ISR again.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from barnabas import Admin
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.layout import ClusterLayout

from tests.support.broker_process import run_broker
from tests.support.cluster_state import (
    known_everywhere,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.faulty_disks import CannotMount, FragileDisk, SmallDisk
from tests.support.log_files import until_sound
from tests.support.real_cluster import assert_no_traceback
from tests.support.workload import Workload

pytestmark = pytest.mark.integration

FULL, READ_ONLY = 1, 2
Disks = dict[int, SmallDisk | FragileDisk]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Broker 1 is on a small disk, broker 2 on a fragile one, broker 3 on the machine's disk."""
    folder = tmp_path_factory.mktemp("disks")
    config = {
        "zookeeper.session.timeout.ms": "2000",
        "replica.lag.time.max.ms": "3000",
        "log.segment.bytes": "1000000",
    }
    cluster = LocalCluster(folder / "cluster", brokers=3, config=config)
    mounted: list[SmallDisk | FragileDisk] = []
    try:
        for disk in _disks(cluster).values():
            try:
                disk.mount()
            except CannotMount as why:
                pytest.skip(str(why))
            mounted.append(disk)
        cluster.start()
        yield cluster
        assert_no_traceback(cluster)
    finally:
        cluster.kill_all()
        for disk in mounted:
            disk.unmount()


def _disks(cluster: LocalCluster) -> Disks:
    """Return the disks by broker; new objects find the disks that are mounted."""
    layout = cluster.layout
    image = cluster.directory.parent / "ext4.img"
    return {
        FULL: SmallDisk(layout.data_directory(FULL), 16),
        READ_ONLY: FragileDisk(layout.data_directory(READ_ONLY), image, 32),
    }


@pytest.mark.parametrize("role", ["leader", "follower"])
@pytest.mark.parametrize("broker", [FULL, READ_ONLY], ids=["full", "read-only"])
async def test_a_disk_fails_under_load(cluster: LocalCluster, broker: int, role: str) -> None:
    topic = f"disk-{broker}-{role}"
    others = [b for b in cluster.broker_ids if b != broker]
    replicas = [broker, *others] if role == "leader" else [*others, broker]
    await _create(cluster, topic, replicas)
    disk = _disks(cluster)[broker]
    async with Workload(topic, 1, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        await asyncio.to_thread(disk.fail)
        await asyncio.to_thread(_wait_until_gone, cluster, broker)
        _assert_said_why(cluster, broker)
        await workload.acked_in_every_partition(50)
        await until_not_led_by(cluster.bootstrap, topic, broker)
        await asyncio.to_thread(disk.repair)
        await asyncio.to_thread(cluster.restart, broker)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.acked_in_every_partition(50)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()
    for broker_id in cluster.broker_ids:
        await until_sound(cluster.layout.data_directory(broker_id))


@pytest.mark.parametrize("broker", [FULL, READ_ONLY], ids=["full", "read-only"])
async def test_a_broker_does_not_start_on_a_disk_it_cannot_write(
    cluster: LocalCluster, tmp_path: Path, broker: int
) -> None:
    await asyncio.to_thread(cluster.stop_broker, broker)
    disk = _disks(cluster)[broker]
    disk.fail()
    try:
        properties = cluster.layout.properties(broker)
        outcome = await asyncio.to_thread(run_broker, properties, tmp_path)
        outcome.assert_one_line()
    finally:
        disk.repair()
    await asyncio.to_thread(cluster.restart, broker)


async def _create(cluster: LocalCluster, topic: str, replicas: list[int]) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(
            topic, assignments={0: replicas}, configs={"min.insync.replicas": "2"}
        )
    await known_everywhere(cluster.bootstrap, topic)
    assert (await leaders(cluster.bootstrap, topic))[0] == replicas[0]


def _wait_until_gone(cluster: LocalCluster, broker: int, within: float = 30.0) -> None:
    deadline = time.monotonic() + within
    while cluster.pid(broker) is not None:
        assert time.monotonic() < deadline, f"broker {broker} still runs on a disk that failed"
        time.sleep(0.05)


def _assert_said_why(cluster: LocalCluster, broker: int) -> None:
    """Assert that the last line names the directory, and that there is no traceback before it."""
    member = cluster.broker(broker)
    last = member.last_line()
    assert last.startswith("barnabas broker: "), last
    assert str(cluster.layout.data_directory(broker)) in last
    assert "Traceback" not in member.log_file.read_text()


# One disk of two


@dataclass(frozen=True)
class TwoDirectories(ClusterLayout):
    """Every broker has a second data directory."""

    def second_directory(self, broker_id: int) -> Path:
        return self.broker_directory(broker_id) / "second"

    def properties(self, broker_id: int) -> dict[str, str]:
        both = f"{self.data_directory(broker_id)},{self.second_directory(broker_id)}"
        return {**super().properties(broker_id), "log.dirs": both}


async def test_a_broker_that_loses_one_disk_of_two_lives_on(tmp_path: Path) -> None:
    config = {"zookeeper.session.timeout.ms": "2000", "replica.lag.time.max.ms": "3000"}
    cluster = LocalCluster(tmp_path / "cluster", brokers=3, config=config)
    layout = TwoDirectories(**vars(cluster.layout))
    cluster.layout = layout
    disk = FragileDisk(layout.second_directory(2), tmp_path / "ext4.img", 32)
    try:
        disk.mount()
    except CannotMount as why:
        pytest.skip(str(why))
    try:
        cluster.start()
        await _lose_one_of_two(cluster, layout, disk)
        assert_no_traceback(cluster)
    finally:
        cluster.kill_all()
        disk.unmount()


async def _lose_one_of_two(
    cluster: LocalCluster, layout: TwoDirectories, disk: FragileDisk
) -> None:
    topic, partitions = "two-disks", 4
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(
            topic,
            assignments={number: [2, 1, 3] for number in range(partitions)},
            configs={"min.insync.replicas": "2"},
        )
    await known_everywhere(cluster.bootstrap, topic)
    lost = {int(path.name.rpartition("-")[2]) for path in disk.path.glob(f"{topic}-*")}
    assert 0 < len(lost) < partitions, "each of the directories has some of the partitions"
    async with Workload(topic, partitions, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(50)
        disk.fail()
        await workload.acked_in_every_partition(50)
        await _until_2_leads_only(cluster, topic, set(range(partitions)) - lost)
        assert cluster.pid(2) is not None
        await asyncio.to_thread(cluster.stop_broker, 2)
        await asyncio.to_thread(disk.repair)
        await asyncio.to_thread(cluster.restart, 2)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()
    await until_sound(layout.second_directory(2))


async def _until_2_leads_only(cluster: LocalCluster, topic: str, kept: set[int]) -> None:
    """Wait until the asked broker knows it; it may be the last that UpdateMetadata reaches."""
    async with asyncio.timeout(20):
        while True:
            led = await leaders(cluster.bootstrap, topic)
            if {partition for partition, leader in led.items() if leader == 2} == kept:
                return
            await asyncio.sleep(0.05)

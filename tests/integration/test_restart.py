"""A killed broker restarts on its own directory: it serves immediately, and its log is recovered.

The session timeout is far longer than these tests, so everything that they observe happens because
the restarted broker closed its predecessor's ZooKeeper session.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from barnabas import Admin, Producer, TopicPartition
from barnabas_common.errors import TransportError
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.readiness import ask

from tests.support import log_files
from tests.support.cluster_state import create_topic, leaders, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.workload import Workload, read_all
from tests.support.zookeeper_client import broker_epoch, zookeeper

pytestmark = pytest.mark.integration

BROKER = 3
SESSION_SECONDS = 30


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    config = {
        "zookeeper.session.timeout.ms": str(SESSION_SECONDS * 1000),
        "replica.lag.time.max.ms": "3000",
        "replica.fetch.backoff.ms": "200",
        "log.segment.bytes": "20000",
        "log.index.interval.bytes": "500",
    }
    directory: Path = tmp_path_factory.mktemp("cluster")
    with real_cluster(directory, config) as running:
        yield running


# Its place in the cluster


async def test_a_killed_broker_serves_again_long_before_its_session_ends(
    cluster: LocalCluster,
) -> None:
    topic = "soon-back"
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(topic, assignments={0: [BROKER, 1, 2]})
    tp = TopicPartition(topic, 0)
    took = []
    async with Producer(cluster.bootstrap) as producer, zookeeper(cluster) as session:
        for number in range(3):
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
            before = await broker_epoch(session, BROKER)
            await asyncio.to_thread(cluster.kill, BROKER)
            began = time.monotonic()
            await asyncio.to_thread(cluster.start_broker, BROKER, False)
            await _until_it_serves(cluster, BROKER)
            took.append(time.monotonic() - began)
            after = await broker_epoch(session, BROKER)
            assert before is not None and after is not None and after > before
            await wait_until_in_sync(cluster.bootstrap, topic)
        assert (await leaders(cluster.bootstrap, topic))[0] != BROKER
    # A second on two idle cores; the machine may be busy with other work.
    assert max(took) < SESSION_SECONDS / 3, took
    assert [value for _, value in (await read_all(cluster.bootstrap, [tp]))[tp]] == [
        b"0",
        b"1",
        b"2",
    ]


async def _until_it_serves(cluster: LocalCluster, broker_id: int) -> None:
    """Wait until the broker itself knows that it is in the cluster, and knows the controller."""
    address = f"127.0.0.1:{cluster.layout.ports(broker_id)[0]}"
    async with asyncio.timeout(30):
        while True:
            try:
                metadata = await ask(address)
                known = [broker.broker_id for broker in metadata.brokers]
                if broker_id in known and metadata.controller_id >= 0:
                    return
            except TransportError:
                pass
            await asyncio.sleep(0.02)


# Its log


async def _written(cluster: LocalCluster, topic: str) -> None:
    """Write a topic of one partition of which every broker has several segments."""
    await create_topic(cluster.bootstrap, topic, 1)
    async with Producer(cluster.bootstrap, batch_size=1000) as producer:
        for number in range(600):
            await producer.send(topic, b"%d" % number * 20, partition=0)
    await wait_until_in_sync(cluster.bootstrap, topic)


def _cut_the_tail(folder: Path) -> None:
    log_files.cut(log_files.segments(folder)[-1], 77)


def _append_zeros(folder: Path) -> None:
    log_files.append(log_files.segments(folder)[-1], bytes(5000))


def _append_garbage(folder: Path) -> None:
    log_files.append(log_files.segments(folder)[-1], b"garbage!" * 100)


def _append_half_a_batch(folder: Path) -> None:
    segment = log_files.segments(folder)[-1]
    log_files.append(segment, segment.read_bytes()[:100])


def _flip_a_bit(folder: Path) -> None:
    log_files.flip(log_files.segments(folder)[-1], 30)


def _lose_the_last_segment(folder: Path) -> None:
    base = log_files.segments(folder)[-1].stem
    for suffix in (log_files.LOG, log_files.OFFSET_INDEX, log_files.TIME_INDEX):
        (folder / f"{base}{suffix}").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "damage",
    [
        _cut_the_tail,
        _append_zeros,
        _append_garbage,
        _append_half_a_batch,
        _flip_a_bit,
        _lose_the_last_segment,
    ],
)
async def test_a_damaged_tail_is_cut_and_replicated_again(
    cluster: LocalCluster, damage: Callable[[Path], None]
) -> None:
    topic = f"damaged{damage.__name__.replace('_', '-')}"
    await _written(cluster, topic)
    await asyncio.to_thread(cluster.kill, BROKER)
    folder = cluster.layout.data_directory(BROKER) / f"{topic}-0"
    damage(folder)
    await asyncio.to_thread(cluster.restart, BROKER)
    async with Workload(topic, 1, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
    await wait_until_in_sync(cluster.bootstrap, topic)
    await _replicas_agree(cluster, topic)
    await log_files.until_sound(cluster.layout.data_directory(BROKER))


def _remove(index: Path) -> None:
    index.unlink()


def _garble(index: Path) -> None:
    index.write_bytes(b"garbage")


@pytest.mark.parametrize("damage", [_remove, _garble])
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
async def test_damaged_index_files_are_rebuilt(
    cluster: LocalCluster, clean: bool, damage: Callable[[Path], None]
) -> None:
    topic = f"index{damage.__name__}-{clean}".lower().replace("_", "-")
    await _written(cluster, topic)
    stop = cluster.stop_broker if clean else cluster.kill
    await asyncio.to_thread(stop, BROKER)
    folder = cluster.layout.data_directory(BROKER) / f"{topic}-0"
    indexes = log_files.segments(folder, log_files.OFFSET_INDEX)
    indexes += log_files.segments(folder, log_files.TIME_INDEX)
    assert len(indexes) >= 4
    for index in indexes:
        damage(index)
    await asyncio.to_thread(cluster.restart, BROKER)
    await wait_until_in_sync(cluster.bootstrap, topic)
    assert all(index.exists() for index in indexes)
    first = log_files.segments(folder, log_files.OFFSET_INDEX)[0]
    assert first.stat().st_size > 0, "a segment of many batches has entries in its index"
    await log_files.until_sound(cluster.layout.data_directory(BROKER))


async def test_recovery_says_what_it_cut(cluster: LocalCluster) -> None:
    topic = "told"
    await _written(cluster, topic)
    await asyncio.to_thread(cluster.kill, BROKER)
    _append_garbage(cluster.layout.data_directory(BROKER) / f"{topic}-0")
    already = cluster.broker(BROKER).log_file.stat().st_size
    await asyncio.to_thread(cluster.restart, BROKER)
    async with asyncio.timeout(20):  # it first leaves the ISR: not a torn batch, but damage
        while not _says(cluster.broker(BROKER).log_file, already, f"{topic}-0", "800 bytes"):
            await asyncio.sleep(0.1)


def _says(log_file: Path, already: int, *parts: str) -> bool:
    """Whether a line behind the first `already` bytes has all parts."""
    lines = log_file.read_bytes()[already:].decode().splitlines()
    return any(all(part in line for part in parts) for line in lines)


async def _replicas_agree(cluster: LocalCluster, topic: str, within: float = 20.0) -> None:
    """Wait until the bytes of the partition are equal on every broker, whatever its segments."""
    async with asyncio.timeout(within):
        while True:
            contents = {
                log_files.content(cluster.layout.data_directory(broker) / f"{topic}-0")
                for broker in cluster.broker_ids
            }
            if len(contents) == 1:
                return
            await asyncio.sleep(0.1)

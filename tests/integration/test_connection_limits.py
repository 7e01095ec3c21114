"""More connections than descriptors, against brokers that may open 1,024 files.

Connections over the limit are closed. The brokers, their replication and the connected clients
continue, and new clients are served once there is room. Where descriptors run out nevertheless, no
log directory fails.
"""

import asyncio
import contextlib
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from barnabas import Admin, Producer
from barnabas_broker.config.properties import format_properties
from barnabas_broker.rpc.client_connections import count_established
from barnabas_common.errors import NotApplied
from barnabas_common.events import EventKind
from barnabas_common.runtime import Address, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_common.transport.grpc_network import GrpcNetwork
from barnabas_tools.local import cluster as local_cluster
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.zookeeper_server import zookeeper_command

from tests.support.broker_process import run, spare_properties
from tests.support.cluster_state import (
    known_everywhere,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.idle_connections import IdleConnections, limited_command
from tests.support.log_files import until_sound
from tests.support.real_cluster import assert_no_traceback
from tests.support.workload import Workload, read_all

pytestmark = pytest.mark.integration

LIMIT = 1024
CROWD = 1500
SEGMENT_BYTES = 100_000
VALUE_BYTES = 10_000
CONFIG = {
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "3000",
    "log.segment.bytes": str(SEGMENT_BYTES),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_cluster, "_broker_command", partial(limited_command, LIMIT))
        running = LocalCluster(tmp_path_factory.mktemp("limits") / "c", brokers=3, config=CONFIG)
        with running:
            yield running
            assert_no_traceback(running)


async def test_a_crowd_of_idle_connections_ends_nothing(cluster: LocalCluster) -> None:
    topic, door = "crowd", _clients(cluster, 1)
    await _create(cluster, topic, [1, 2, 3])
    pids = [cluster.pid(broker) for broker in cluster.broker_ids]
    async with Producer(cluster.bootstrap) as producer:
        await producer.send_and_wait(topic, _value(0), partition=0)
        with IdleConnections(door, CROWD) as idle:
            await asyncio.to_thread(_wait, lambda: 100 < idle.still_open() <= LIMIT // 2)
            for number in range(1, 3 * SEGMENT_BYTES // VALUE_BYTES):
                await producer.send_and_wait(topic, _value(number), partition=0)
            await asyncio.to_thread(_wait, lambda: min(_segments(cluster, topic)) > 2)
            assert not await _serves(door), "there is no room for a new client"
            assert await _serves(_clients(cluster, 2))
            await asyncio.to_thread(_wait_for_event, cluster, 1, EventKind.CONNECTION_LIMIT_REACHED)
        await asyncio.to_thread(_wait_for_event, cluster, 1, EventKind.CONNECTION_LIMIT_RELIEVED)
    assert await _serves(door)
    records = await read_all(cluster.bootstrap, [TopicPartition(topic, 0)])
    assert [value for _, value in records[TopicPartition(topic, 0)]] == [
        _value(number) for number in range(3 * SEGMENT_BYTES // VALUE_BYTES)
    ]
    assert [cluster.pid(broker) for broker in cluster.broker_ids] == pids
    assert (await leaders(cluster.bootstrap, topic))[0] == 1
    for broker in cluster.broker_ids:
        assert not _has_event(cluster, broker, EventKind.DESCRIPTORS_EXHAUSTED)
        await until_sound(cluster.layout.data_directory(broker))


@pytest.mark.parametrize("broker", [1, 2], ids=["leader", "follower"])
async def test_no_disk_has_failed_where_descriptors_run_out(
    cluster: LocalCluster, broker: int
) -> None:
    topic = f"exhausted-{broker}"
    await _create(cluster, topic, [1, 2, 3])
    pid = cluster.pid(broker)
    assert pid is not None
    exhausted, started = EventKind.DESCRIPTORS_EXHAUSTED, EventKind.BROKER_STARTED
    starts = _count_events(cluster, 3, started)
    before = _count_events(cluster, broker, exhausted)
    freed = _count_events(cluster, broker, EventKind.DESCRIPTORS_FREED)
    async with Workload(topic, 1, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(20)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (_open_files(pid), LIMIT))
        async with Producer(cluster.bootstrap) as producer:
            handles = [await producer.send(topic, b"x" * 20_000, partition=0) for _ in range(20)]
            await asyncio.to_thread(
                _wait, lambda: _count_events(cluster, broker, exhausted) == before + 1
            )
            cluster.kill(3)  # connections that break now cannot be opened again
            cluster.start_broker(3, wait=False)
            await asyncio.to_thread(_wait, lambda: _count_events(cluster, 3, started) > starts)
            assert cluster.pid(broker) == pid
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
            async with asyncio.timeout(20):
                for handle in handles:
                    await handle
        await workload.acked_in_every_partition(50)
        await workload.stop()
        assert not workload.failed
    await wait_until_in_sync(cluster.bootstrap, topic)
    await asyncio.to_thread(
        _wait, lambda: _count_events(cluster, broker, EventKind.DESCRIPTORS_FREED) > freed
    )
    assert cluster.pid(broker) == pid
    assert not _has_event(cluster, broker, EventKind.LOG_DIRECTORY_FAILED)
    await until_sound(cluster.layout.data_directory(broker))


async def test_a_session_that_ends_meanwhile_is_regained(cluster: LocalCluster) -> None:
    await _create(cluster, "session", [1, 2, 3])
    pid = cluster.pid(1)
    assert pid is not None
    regained = _count_events(cluster, 1, EventKind.SESSION_REGAINED)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, LIMIT))
    zookeeper = cluster.zookeeper
    assert zookeeper.process is not None
    zookeeper.process.kill()
    zookeeper.start(zookeeper_command(zookeeper.directory, cluster.layout.zookeeper_port))
    await until_not_led_by(str(_clients(cluster, 2)), "session", 1)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    await asyncio.to_thread(
        _wait, lambda: _count_events(cluster, 1, EventKind.SESSION_REGAINED) > regained
    )
    await wait_until_in_sync(cluster.bootstrap, "session")
    assert cluster.pid(1) == pid


async def test_what_a_client_sends_raw_is_not_in_the_log(cluster: LocalCluster) -> None:
    with socket.create_connection(_clients(cluster, 1), timeout=5.0) as raw:
        raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0")
        text = b"\0\0\0\0\0\0\0\x02" + b"raw\0\xff\xfe"
        raw.sendall(len(text).to_bytes(3, "big") + b"\x07\0\0\0\0\0" + text)
        raw.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            while raw.recv(1000):
                pass
    for broker in cluster.broker_ids:
        log = cluster.broker(broker).log_file.read_bytes()
        assert b"\0" not in log and b"raw" not in log and b"chttp2" not in log


def test_a_broker_does_not_start_with_too_few_descriptors(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(format_properties(spare_properties(cluster, 9, tmp_path / "data")))
    outcome = run(limited_command(100, file))
    outcome.assert_one_line("the limit of open files is 100", "at least 112 are needed")


async def test_settings_of_connections(tmp_path: Path) -> None:
    config = {**CONFIG, "max.connections": "12", "connections.max.idle.ms": "1500"}
    with LocalCluster(tmp_path / "c", brokers=3, config=config) as cluster:
        await _create(cluster, "t", [1, 2, 3])
        async with Producer(cluster.bootstrap) as producer:
            await producer.send_and_wait("t", b"1", partition=0)
            with await asyncio.to_thread(
                IdleConnections(_clients(cluster, 2), 20).__enter__
            ) as idle:
                await asyncio.to_thread(_wait, lambda: 8 <= idle.still_open() <= 12)
                await producer.send_and_wait("t", b"2", partition=0)
                # neither an idle client nor a connection without HTTP/2 stays
                await asyncio.to_thread(idle.wait_until_open, 0)
            await asyncio.to_thread(_wait, lambda: _established(cluster, 1) == 0)
            await producer.send_and_wait("t", b"3", partition=0)
        await wait_until_in_sync(cluster.bootstrap, "t")
        for broker in cluster.broker_ids:
            assert not _has_event(cluster, broker, EventKind.BROKER_SUSPECTED)
            assert not _has_event(cluster, broker, EventKind.FETCH_RESUMED)
        assert_no_traceback(cluster)


async def _create(cluster: LocalCluster, topic: str, replicas: list[int]) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(
            topic, assignments={0: replicas}, configs={"min.insync.replicas": "2"}
        )
    await known_everywhere(cluster.bootstrap, topic)


def _value(number: int) -> bytes:
    return b"%d" % number + b"x" * VALUE_BYTES


def _segments(cluster: LocalCluster, topic: str) -> list[int]:
    """Return the number of segments on each broker."""
    folders = [cluster.layout.data_directory(b) / f"{topic}-0" for b in cluster.broker_ids]
    return [len(list(folder.glob("*.log"))) for folder in folders]


def _clients(cluster: LocalCluster, broker: int) -> Address:
    return Address("127.0.0.1", cluster.layout.ports(broker)[0])


async def _serves(address: Address) -> bool:
    """Whether a new client gets an answer."""
    channel = GrpcNetwork().connect(address, Service.DATA)
    try:
        await channel.open(2.0)
    except NotApplied:
        return False
    finally:
        await channel.close()
    return True


def _established(cluster: LocalCluster, broker: int) -> int:
    return count_established([_clients(cluster, broker).port]) or 0


def _open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _count_events(cluster: LocalCluster, broker: int, kind: EventKind) -> int:
    text = cluster.broker(broker).log_file.read_text(errors="replace")
    return text.count(f" {kind.value}: ")


def _has_event(cluster: LocalCluster, broker: int, kind: EventKind) -> bool:
    return _count_events(cluster, broker, kind) > 0


def _wait_for_event(cluster: LocalCluster, broker: int, kind: EventKind) -> None:
    _wait(lambda: _has_event(cluster, broker, kind))


def _wait(condition: Callable[[], bool], within: float = 20.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.1)

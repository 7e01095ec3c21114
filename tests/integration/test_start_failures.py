"""A broker that cannot start says why in one line, exits with 1, and disturbs no other."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from barnabas import Admin, Consumer, Producer, TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.ports import HOST, free_ports

from tests.support.broker_process import Outcome, run, run_broker, spare_properties
from tests.support.cluster_state import create_topic

pytestmark = pytest.mark.integration

TOPIC = "still-serving"
TP = TopicPartition(TOPIC, 0)
SESSION_SECONDS = 2.0


@pytest_asyncio.fixture(autouse=True)
async def undisturbed(cluster: LocalCluster) -> AsyncIterator[None]:
    """After each test the three brokers are the same processes, and serve."""
    pids = [cluster.pid(broker_id) for broker_id in cluster.broker_ids]
    yield
    assert [cluster.pid(broker_id) for broker_id in cluster.broker_ids] == pids
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        if TOPIC not in await admin.list_topics():
            await create_topic(cluster.bootstrap, TOPIC, 1)
        description = await admin.describe_cluster()
        assert [broker.broker_id for broker in description.brokers] == cluster.broker_ids
    async with Producer(cluster.bootstrap) as producer:
        metadata = await producer.send_and_wait(TOPIC, b"alive", partition=0)
    async with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        consumer.assign([TP])
        consumer.seek(TP, metadata.offset)
        assert [record.value for record in await consumer.poll(timeout_ms=10_000)] == [b"alive"]


async def start(cluster: LocalCluster, tmp_path: Path, **changes: str | None) -> Outcome:
    """Start broker 9 of this cluster with some settings changed, or left out (None).

    Settings are named with _ for dots.
    """
    properties = spare_properties(cluster, 9, tmp_path / "data")
    for name, value in changes.items():
        key = name.replace("_", ".")
        if value is None:
            del properties[key]
        else:
            properties[key] = value
    return await asyncio.to_thread(run_broker, properties, tmp_path)


# Something that another process has


async def test_a_second_broker_with_the_same_id_waits_one_session(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    outcome = await start(cluster, tmp_path, broker_id="1")
    outcome.assert_one_line("id 1", "already registered")
    assert SESSION_SECONDS <= outcome.seconds <= SESSION_SECONDS + 20


@pytest.mark.parametrize("which", [0, 1], ids=["client", "inter-broker"])
async def test_the_port_of_another_broker(
    cluster: LocalCluster, tmp_path: Path, which: int
) -> None:
    ports = free_ports(2)
    ports[which] = cluster.layout.ports(2)[which]
    listeners = f"CLIENT://{HOST}:{ports[0]},INTERNAL://{HOST}:{ports[1]}"
    outcome = await start(cluster, tmp_path, listeners=listeners)
    outcome.assert_one_line(str(ports[which]))


async def test_the_port_of_a_stranger(cluster: LocalCluster, tmp_path: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind((HOST, 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        listeners = f"CLIENT://{HOST}:{port},INTERNAL://{HOST}:{free_ports(1)[0]}"
        outcome = await start(cluster, tmp_path, listeners=listeners)
    outcome.assert_one_line(str(port))


async def test_the_advertised_address_of_another_broker(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    taken, internal = cluster.layout.ports(2)[0], free_ports(1)[0]
    advertised = f"CLIENT://{HOST}:{taken},INTERNAL://{HOST}:{internal}"
    properties = spare_properties(cluster, 9, tmp_path / "data")
    properties["advertised.listeners"] = advertised
    outcome = await asyncio.to_thread(run_broker, properties, tmp_path)
    outcome.assert_one_line(str(taken), "broker 2")


async def test_the_directory_of_a_living_broker(cluster: LocalCluster, tmp_path: Path) -> None:
    data = cluster.layout.data_directory(1)
    outcome = await start(cluster, tmp_path, broker_id="1", log_dirs=str(data))
    outcome.assert_one_line(str(data))


# A directory of another broker or cluster


async def test_the_directory_of_another_cluster(cluster: LocalCluster, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=0\nbroker.id=9\ncluster.id=OfAnotherCluster\n")
    (await start(cluster, tmp_path)).assert_one_line("OfAnotherCluster", str(data))


async def test_the_directory_of_another_broker(cluster: LocalCluster, tmp_path: Path) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        cluster_id = (await admin.describe_cluster()).cluster_id
    data = tmp_path / "data"
    data.mkdir()
    content = f"version=0\nbroker.id=7\ncluster.id={cluster_id}\n"
    (data / "meta.properties").write_text(content)
    (await start(cluster, tmp_path)).assert_one_line("broker.id", "7", "9")


async def test_a_directory_that_is_a_file(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    (await start(cluster, tmp_path)).assert_one_line(str(tmp_path / "data"))


# Configuration


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"no_such_setting": "1"}, ["no.such.setting"]),
        ({"log_segment_bytes": "much"}, ["log.segment.bytes", "much"]),
        ({"num_partitions": "0"}, ["num.partitions", "between"]),
        ({"auto_create_topics_enable": "yes"}, ["auto.create.topics.enable", "true or false"]),
        ({"inter_broker_listener_name": None}, ["inter.broker.listener.name"]),
        ({"inter_broker_listener_name": "ELSEWHERE"}, ["inter.broker.listener.name", "CLIENT"]),
        ({"listeners": "CLIENT:127.0.0.1"}, ["listener", "NAME://host:port"]),
        ({"broker_id": None}, ["broker.id"]),
        ({"zookeeper_connect": None}, ["zookeeper.connect"]),
        ({"replica_fetch_wait_max_ms": "60000"}, ["replica.fetch.wait.max.ms"]),
        ({"log_cleanup_policy": "remove"}, ["log.cleanup.policy"]),
        ({"log_dirs": ","}, ["log.dirs", "no directory"]),
        ({"log_dirs": "/tmp/barnabas-no,/tmp/barnabas-no"}, ["log.dirs", "twice"]),
        ({"log_dirs": "/tmp/barnabas-no\0"}, ["log.dirs", "null character"]),
    ],
)
async def test_a_wrong_setting(
    cluster: LocalCluster, tmp_path: Path, changes: dict[str, str | None], words: list[str]
) -> None:
    (await start(cluster, tmp_path, **changes)).assert_one_line(*words)


def test_a_file_that_is_missing_or_makes_no_sense(cluster: LocalCluster, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "barnabas_tools.cli.cluster.run_broker"]
    missing = tmp_path / "missing.properties"
    run([*command, str(missing)]).assert_one_line(str(missing))
    garbled = tmp_path / "garbled.properties"
    garbled.write_text("broker.id=1\nwhat is this\n")
    run([*command, str(garbled)]).assert_one_line("line 2")


def test_the_command_line_itself(cluster: LocalCluster, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "barnabas_tools.cli.main", "broker", "run"]
    missing = str(tmp_path / "missing.properties")
    run([*command, "--config", missing]).assert_one_line("missing.properties")
    usage = run([*command, "--no-such-option"])
    assert usage.code == 2 and "Traceback" not in usage.stderr


# ZooKeeper


async def test_zookeeper_unreachable(cluster: LocalCluster, tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    outcome = await start(
        cluster,
        tmp_path,
        zookeeper_connect=f"{HOST}:{nobody}",
        zookeeper_connection_timeout_ms="1000",
    )
    outcome.assert_one_line(f"{HOST}:{nobody}")
    assert outcome.seconds < 15

"""Real clusters judged by the checker of histories, and controls in which it must find a loss.

A checker that never finds a loss may be blind, and a fault that never causes one may be none. So
each fault strikes twice: under settings that permit the loss, and under the safe ones.
"""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from barnabas.producer.config import ProducerOptions
from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.promise import PROFILES
from barnabas_tools.chaos.report.__main__ import main as report
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import (
    create_topic,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.real_cluster import real_cluster
from tests.support.recorded_run import RecordedRun

pytestmark = pytest.mark.integration

# Long enough that a follower that stands still remains in the ISR while the leader is killed.
LAG_MS = 10_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    config = {
        "zookeeper.session.timeout.ms": "6000",
        "replica.lag.time.max.ms": str(LAG_MS),
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    }
    with real_cluster(tmp_path_factory.mktemp("cluster"), config) as running:
        yield running


async def kill_a_leader_whose_followers_stand_still(
    cluster: LocalCluster, run: RecordedRun, acknowledges_alone: bool
) -> None:
    """What the leader has acknowledged without its followers is lost with its election."""
    topic = run.partitions[0].topic
    leader = (await leaders(run.bootstrap, topic))[0]
    followers = [broker for broker in cluster.broker_ids if broker != leader]
    for broker in followers:
        cluster.signal(broker, signal.SIGSTOP)
    try:
        if acknowledges_alone:
            await run.acknowledged_more(100)
        else:
            await run.begun_more(250)  # and nothing acknowledges them
    finally:
        await asyncio.to_thread(cluster.kill, leader)
        for broker in followers:
            cluster.signal(broker, signal.SIGCONT)
    await until_not_led_by(run.bootstrap, topic, leader)
    await run.acknowledged_more(20)
    await asyncio.to_thread(cluster.restart, leader)
    await wait_until_in_sync(run.bootstrap, topic)


@pytest.mark.parametrize("acks", ["1", "all"])
async def test_a_leader_is_killed_before_its_followers_have_the_records(
    cluster: LocalCluster, tmp_path: Path, acks: str
) -> None:
    topic = f"acks-{acks}"
    await create_topic(cluster.bootstrap, topic, 1)
    options: ProducerOptions = {"acks": "1" if acks == "1" else "all"}
    run = RecordedRun(tmp_path, cluster.bootstrap, topic, 1, options)
    async with run.running():
        await run.acknowledged_more(100)
        await kill_a_leader_whose_followers_stand_still(cluster, run, acks == "1")
    safe = await run.judged(PROFILES["safe"], within=20.0)
    assert safe.acknowledged > 100
    assert safe.unread == []
    if acks == "1":
        assert safe.findings.counts[Anomaly.LOST_WRITE] > 0
        assert set(safe.broken) <= PROFILES["acks-1"].permitted()
    else:
        assert safe.examples() == []
        assert safe.good


@pytest.mark.parametrize("unclean", [True, False])
async def test_a_replica_outside_the_isr_is_all_that_is_left(
    cluster: LocalCluster, tmp_path: Path, unclean: bool
) -> None:
    """Kafka 0.8: the ISR shrinks to the leader, the leader dies, and an old replica is elected."""
    topic = f"unclean-{str(unclean).lower()}"
    settings = {"min_insync_replicas": "1" if unclean else "2"}
    settings["unclean_leader_election_enable"] = str(unclean).lower()
    await create_topic(cluster.bootstrap, topic, 1, **settings)
    run = RecordedRun(tmp_path, cluster.bootstrap, topic, 1, {"acks": "all"})
    async with run.running():
        await run.acknowledged_more(100)
        leader = (await leaders(cluster.bootstrap, topic))[0]
        followers = [broker for broker in cluster.broker_ids if broker != leader]
        for broker in followers:
            await asyncio.to_thread(cluster.kill, broker)
        if unclean:
            await run.acknowledged_more(200)
        await asyncio.to_thread(cluster.kill, leader)
        for broker in followers:
            await asyncio.to_thread(cluster.restart, broker)
        if unclean:
            await until_not_led_by(cluster.bootstrap, topic, leader, within=60.0)
            await run.acknowledged_more(20)
        await asyncio.to_thread(cluster.restart, leader)
        await wait_until_in_sync(cluster.bootstrap, topic)
        await run.acknowledged_more(20)
    safe = await run.judged(PROFILES["safe"], within=20.0)
    assert safe.unread == []
    if unclean:
        lost = safe.findings.counts[Anomaly.LOST_WRITE] + safe.findings.counts[Anomaly.VANISHED]
        assert lost > 0
        assert set(safe.broken) <= PROFILES["unclean"].permitted()
    else:
        assert safe.examples() == []
        assert safe.good


def started(
    cluster: LocalCluster, folder: Path, topic: str, role: str, *options: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "barnabas_tools.chaos.clients", role, "--topic", topic]
    command += ["--bootstrap", cluster.bootstrap, "--folder", str(folder), *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


async def grown(path: Path, lines: int, within: float = 60.0) -> None:
    """Wait until a history has more lines."""
    async with asyncio.timeout(within):
        while not path.exists() or path.read_bytes().count(b"\n") < lines:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("role", "level", "promise"),
    [("producer", "read_uncommitted", "safe"), ("transactor", "read_committed", "idempotent")],
)
async def test_clients_are_processes_that_are_killed(
    cluster: LocalCluster, tmp_path: Path, role: str, level: str, promise: str
) -> None:
    """A producer and a member are killed with -9, as is the leader; all of it is in the history."""
    topic = f"of-{role}s"
    await create_topic(cluster.bootstrap, topic, 2)
    start = partial(started, cluster, tmp_path, topic)
    # The second incarnation waits until the group has given up the first.
    reading = ("--set", f"isolation_level={level}", "--set", "session_timeout_ms=6000")
    running = {
        "producer": start(role, "--client", "producer"),
        "observer": start("observer", "--client", "observer"),
    }
    for name in ("member-1", "member-2"):
        running[name] = start("member", "--client", name, *reading)
    await grown(tmp_path / "producer.1.jsonl", 500)
    await grown(tmp_path / "member-1.1.jsonl", 10)
    again = {"producer": (role, ()), "member-1": ("member", reading)}
    for name, (kind, options) in again.items():
        running[name].kill()
        next_one = ("--client", name, "--incarnation", "2")
        running[f"{name} again"] = start(kind, *next_one, *options)
    leader = (await leaders(cluster.bootstrap, topic))[0]
    await asyncio.to_thread(cluster.kill, leader)
    await grown(tmp_path / "producer.2.jsonl", 500)
    await asyncio.to_thread(cluster.restart, leader)
    await wait_until_in_sync(cluster.bootstrap, topic)
    for process in running.values():
        process.terminate()
    codes = {name: await asyncio.to_thread(process.wait, 60) for name, process in running.items()}
    assert {code for name, code in codes.items() if codes[name] != -signal.SIGKILL} == {0}
    judge = start("judge", "--client", "judge", "--within", "60")
    assert await asyncio.to_thread(judge.wait, 120) == 0
    assert report([str(tmp_path), "--profile", promise]) == 0
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["acknowledged"] > 500
    assert content["states"].keys() == {f"{topic}-0", f"{topic}-1"}

"""`barnabas explain` and `barnabas watch` name the cause, on real processes and from a shell."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import controller_id, create_topic, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.workload import Workload

pytestmark = pytest.mark.integration

# The escape sequences with which a program enters and leaves the alternate screen.
ALTERNATE_SCREEN, OWN_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
COMMAND = [sys.executable, "-m", "barnabas_tools.cli.main"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    config = {
        "zookeeper.session.timeout.ms": "20000",
        "replica.lag.time.max.ms": "2000",
        "auto.leader.rebalance.enable": "false",
    }
    directory: Path = tmp_path_factory.mktemp("cluster")
    with real_cluster(directory, config) as running:
        yield running


def environment(cluster: LocalCluster) -> dict[str, str]:
    return {**os.environ, "BARNABAS_BOOTSTRAP": cluster.bootstrap, "TERM": "xterm"}


@contextlib.contextmanager
def watching(
    cluster: LocalCluster, *arguments: str, stdout: int
) -> Iterator[subprocess.Popen[str]]:
    """`barnabas watch` in the background; killed if the test did not end it."""
    process = subprocess.Popen(
        [*COMMAND, "watch", *arguments],
        env=environment(cluster),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(cluster: LocalCluster, *arguments: str) -> str:
    """Run a command that must succeed; returns its output."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=environment(cluster),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def explain(cluster: LocalCluster, topic: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(ask(cluster, "explain", f"{topic}-0", "-o", "json"))
    return answer


def said(explanation: dict[str, Any], about: str) -> str:
    return "\n".join(s["text"] for s in explanation["sentences"] if s["about"] == about)


async def until_said(cluster: LocalCluster, topic: str, about: str, words: str) -> dict[str, Any]:
    deadline = time.monotonic() + 40
    while True:
        explanation = await asyncio.to_thread(explain, cluster, topic)
        if words in said(explanation, about):
            return explanation
        assert time.monotonic() < deadline, f"{words!r} is not in {json.dumps(explanation)}"


async def new_topic(cluster: LocalCluster, topic: str) -> dict[str, Any]:
    """Create a topic of one partition; returns its explanation once all replicas are in sync."""
    await create_topic(cluster.bootstrap, topic, 1)
    await wait_until_in_sync(cluster.bootstrap, topic)
    before = explain(cluster, topic)
    assert "the partition is new" in said(before, "leader")
    assert "all replicas are in the ISR" in said(before, "isr")
    return before


async def test_a_killed_leader_is_named(cluster: LocalCluster) -> None:
    topic = "killed"
    leader = (await new_topic(cluster, topic))["leader"]
    cluster.kill(leader)
    words = f"broker {leader} is suspected to be dead"
    after = await until_said(cluster, topic, "leader", words)
    assert after["leader"] not in (leader, -1) and after["leader_epoch"] > 0
    assert leader in after["out_of_sync"] and leader in after["unreachable"]
    assert f"broker {leader} is out of the ISR" in said(after, "isr")
    cluster.restart(leader)
    await wait_until_in_sync(cluster.bootstrap, topic)
    back = explain(cluster, topic)
    assert "had not ended in order" in said(back, "broker")
    assert back["unreachable"] == []


async def test_a_stopped_leader_is_named_as_such(cluster: LocalCluster) -> None:
    topic = "stopped"
    leader = (await new_topic(cluster, topic))["leader"]
    cluster.restart(leader)  # SIGTERM first
    await wait_until_in_sync(cluster.bootstrap, topic)
    after = explain(cluster, topic)
    assert f"broker {leader} is shutting down" in said(after, "leader")
    assert "suspected" not in said(after, "leader")
    assert "its last run had ended in order" in said(after, "broker")


async def test_a_follower_that_stands_still_is_named(cluster: LocalCluster) -> None:
    topic = "paused"
    before = await new_topic(cluster, topic)
    # Not the controller: without it no ISR can change until its session ends 20 s later.
    spared = {before["leader"], await controller_id(cluster.bootstrap)}
    follower = next(b for b in before["replicas"] if b not in spared)
    async with Workload(topic, 1, cluster.bootstrap) as workload:
        await workload.acked_in_every_partition(10)
        cluster.signal(follower, signal.SIGSTOP)
        try:
            words = f"broker {follower} is out of the ISR: broker {follower} has not caught up for"
            after = await until_said(cluster, topic, "isr", words)
        finally:
            cluster.signal(follower, signal.SIGCONT)
        assert after["leader"] == before["leader"] and after["leader_epoch"] == 0
        assert after["out_of_sync"] == after["unreachable"] == [follower]
        assert f"broker {follower} does not answer" in said(after, "doubt")
        await workload.stop()
    await wait_until_in_sync(cluster.bootstrap, topic)
    assert "rejoined the ISR" in said(explain(cluster, topic), "isr")


async def test_people_read_sentences(cluster: LocalCluster) -> None:
    await new_topic(cluster, "read")
    text = ask(cluster, "explain", "read-0")
    assert text.startswith("read-0: leader ")
    assert "Why this leader" in text and "the partition is new" in text


def test_wrong_names_are_refused(cluster: LocalCluster) -> None:
    for name, code, words in (("nope-0", 1, "UNKNOWN_TOPIC"), ("nope", 2, "flights-0")):
        done = subprocess.run(
            [*COMMAND, "explain", name], env=environment(cluster), capture_output=True, text=True
        )
        assert done.returncode == code and words in done.stderr


async def test_watch_sees_a_broker_die_and_come_back_and_ends_with_ctrl_c(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    topic = "watched"
    leader = (await new_topic(cluster, topic))["leader"]
    output = tmp_path / "events"

    def seen() -> list[dict[str, Any]]:
        whole = output.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def until_seen(kind: str, broker: int | None = None, words: str = "") -> None:
        deadline = time.monotonic() + 40
        while not any(
            event["kind"] == kind and broker in (None, event["broker"]) and words in event["cause"]
            for event in seen()
        ):
            assert time.monotonic() < deadline, f"no {kind}"
            time.sleep(0.05)

    arguments = [topic, "-o", "json", "--from-beginning"]
    with output.open("w") as file, watching(cluster, *arguments, stdout=file.fileno()) as process:
        until_seen("leader-elected", words="the partition is new")
        cluster.kill(leader)
        until_seen("became-leader", words=f"broker {leader} is suspected to be dead")
        cluster.restart(leader)
        until_seen("broker-started", leader, "had not ended in order")
        until_seen("became-follower", leader)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in errors
    names = ["time_ms", "broker", "sequence", "kind", "topic", "partition", "cause", "details"]
    assert all(list(event) == names for event in seen())
    assert {event["topic"] for event in seen()} <= {topic, None}


def test_watch_ends_by_itself_when_told_to(cluster: LocalCluster) -> None:
    begin = time.monotonic()
    ask(cluster, "watch", "--for", "1")
    assert 1 <= time.monotonic() - begin < 40
    once = ask(cluster, "watch", "--once", "-o", "json").splitlines()
    assert {"broker-started", "controller-elected"} <= {json.loads(line)["kind"] for line in once}


async def test_a_terminal_shows_lanes_and_is_given_back_on_ctrl_c(cluster: LocalCluster) -> None:
    topic = "drawn"
    await new_topic(cluster, topic)
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 140, 0, 0))
    drawn = b""
    deadline = time.monotonic() + 40
    with watching(cluster, topic, stdout=theirs) as process:
        os.close(theirs)
        while not (f"{topic}-0".encode() in drawn and b"leader" in drawn and b"follower" in drawn):
            assert time.monotonic() < deadline, drawn
            drawn += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(ours, 65536):
                drawn += more
        _, errors = process.communicate(timeout=20)
    os.close(ours)
    assert process.returncode == 130 and errors == ""
    assert (drawn.count(ALTERNATE_SCREEN), drawn.count(OWN_SCREEN)) == (1, 1)

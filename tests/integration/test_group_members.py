"""Consumer groups with real processes: members and brokers are killed, and nothing is left out."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas.sync import Consumer as BlockingConsumer
from barnabas_common.errors import UnknownMemberIdError
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic
from tests.support.group_member import ahead_of, done_in
from tests.support.shell import Shell

pytestmark = pytest.mark.integration

PARTITIONS = 9


class Members:
    """Processes of `tests.support.group_member`, which work in `folder`."""

    def __init__(self, cluster: LocalCluster, topic: str, folder: Path) -> None:
        self.cluster = cluster
        self.topic = topic
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.started = 0

    def start(self) -> None:
        self.started += 1
        file = self.folder / f"member-{self.started}.work"
        arguments = (self.cluster.bootstrap, self.topic, f"group-{self.topic}", str(file))
        self.processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.support.group_member", *arguments],
                stderr=(self.folder / f"member-{self.started}.log").open("w"),
            )
        )

    def kill(self, number: int) -> None:
        process = self.processes.pop(number)
        process.kill()
        process.wait()

    def end(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            assert process.wait(timeout=60) == 0
        self.processes.clear()

    def destroy(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@asynccontextmanager
async def producing(bootstrap: str, topic: str) -> AsyncIterator[list[TopicPartition]]:
    """Records in all partitions meanwhile, one after the other; their partitions and offsets."""
    acknowledged: list[Any] = []
    stop = asyncio.Event()

    async def produce() -> None:
        async with Producer(bootstrap, delivery_timeout_ms=60_000) as producer:
            number = 0
            while not stop.is_set():
                handles = [
                    await producer.send(topic, b"%d" % (number + p), partition=p)
                    for p in range(PARTITIONS)
                ]
                number += PARTITIONS
                for handle in handles:
                    metadata = await handle
                    acknowledged.append((metadata.partition, metadata.offset))
                await asyncio.sleep(0.02)

    task = asyncio.create_task(produce())
    try:
        yield acknowledged
    finally:
        stop.set()
        await task


async def until(condition: Callable[[], bool], within: float) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        await asyncio.sleep(0.1)


async def check_commits(admin: Admin, members: Members) -> int:
    """No committed offset is ahead of the work; returns how many records are committed."""
    committed = await admin.list_group_offsets(f"group-{members.topic}")
    offsets = {tp: found.offset for tp, found in committed.items()}
    assert ahead_of(done_in(members.folder), offsets) == []
    return sum(offsets.values())


async def storm(
    cluster: LocalCluster, folder: Path, topic: str, seconds: float, every: float
) -> None:
    """Kill a member or a broker every so often; then everything must have been worked on."""
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    chance = random.Random(topic)
    members = Members(cluster, topic, folder)
    end = time.monotonic() + seconds
    try:
        for _ in range(3):
            members.start()
        async with (
            Admin(cluster.bootstrap) as admin,
            producing(cluster.bootstrap, topic) as acknowledged,
        ):
            await until(lambda: len(done_in(folder)) > 100, 60)
            while time.monotonic() < end:
                if chance.random() < 0.5:
                    await asyncio.to_thread(members.kill, chance.randrange(3))
                    members.start()
                else:
                    broker = chance.choice(cluster.broker_ids)
                    await asyncio.to_thread(cluster.kill, broker)
                    await asyncio.to_thread(cluster.restart, broker)
                seen = len(done_in(folder))
                await asyncio.sleep(every)
                await until(lambda seen=seen: len(done_in(folder)) > seen, 60)
                await check_commits(admin, members)
        await until(lambda: done_in(folder).keys() >= set(acknowledged), 90)
        async with Admin(cluster.bootstrap) as admin:
            await check_commits(admin, members)
            await asyncio.to_thread(members.end)
            assert await check_commits(admin, members) == len(done_in(folder))
    finally:
        members.destroy()


async def test_members_and_brokers_die_and_every_record_is_worked_on(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    await storm(cluster, tmp_path, "storm", seconds=20, every=4)


@pytest.mark.slow
async def test_for_three_minutes(cluster: LocalCluster, tmp_path: Path) -> None:
    await storm(cluster, tmp_path, "long-storm", seconds=180, every=10)


async def test_the_check_finds_work_that_was_left_out(tmp_path: Path) -> None:
    """Planted: a record that is committed and in no file."""
    (tmp_path / "a.work").write_text("0 0 x\n0 1 x\n0 2")
    committed = {TopicPartition("t", 0): 3}
    assert ahead_of(done_in(tmp_path), committed) == [(0, 2)]


async def test_operators_see_and_reset_a_group(cluster: LocalCluster, tmp_path: Path) -> None:
    shell = Shell(cluster.bootstrap, tmp_path)
    shell.ok("topic", "create", "orders", "--partitions", "3", "--replication-factor", "3")
    keyed = "".join(f"{n}:{n}\n" for n in range(30))  # each partition gets some
    shell.ok("produce", "orders", "--key-separator", ":", stdin=keyed)
    printed = shell.ok(
        "consume", "orders", "--group", "shop", "--from-beginning", "--max-messages", "30"
    )
    assert sorted(map(int, printed.split())) == list(range(30))
    assert "shop" in [row["group"] for row in shell.rows("group", "list", "--state", "Empty")]
    rows = shell.rows("group", "describe", "shop")
    assert sum(int(str(row["current_offset"])) for row in rows) == 30
    assert {row["lag"] for row in rows} == {0}

    shown = shell.rows("group", "reset-offsets", "shop", "-t", "orders", "--shift-by", "-1")
    assert all(row["new_offset"] == max(int(str(row["old_offset"])) - 1, 0) for row in shown)
    assert {row["lag"] for row in shell.rows("group", "describe", "shop")} == {0}, "a dry run"

    beyond = shell.run("group", "reset-offsets", "shop", "-t", "orders:0", "--to-offset", "10000")
    assert "orders-0: 10000 is outside the log, from 0 to " in beyond.stderr

    saved = shell.ok("group", "reset-offsets", "shop", "--all-topics", "--to-current", "--export")
    (tmp_path / "saved.csv").write_text(saved)
    shell.ok("group", "reset-offsets", "shop", "--all-topics", "--to-earliest", "--execute")
    again = shell.ok("consume", "orders", "--group", "shop", "--max-messages", "30")
    assert sorted(map(int, again.split())) == list(range(30))
    shell.ok("group", "reset-offsets", "shop", "--all-topics", "--by-duration", "P1D", "--execute")
    assert sum(int(str(row["lag"])) for row in shell.rows("group", "describe", "shop")) == 30
    shell.ok("group", "reset-offsets", "shop", "--from-file", "saved.csv", "--execute")
    assert {row["lag"] for row in shell.rows("group", "describe", "shop")} == {0}

    with BlockingConsumer(
        "orders", bootstrap_servers=cluster.bootstrap, group_id="shop", client_id="till",
        group_instance_id="one",
    ) as consumer:  # fmt: skip
        consumer.poll(timeout_ms=100)
        while not consumer.assignment():
            consumer.poll(timeout_ms=200)
        (row,) = shell.rows("group", "describe", "shop", "--members")
        assert (row["client_id"], row["instance_id"], row["partitions"]) == ("till", "one", 3)
        (state,) = shell.rows("group", "describe", "shop", "--state")
        assert (state["state"], state["assignor"]) == ("Stable", "range")
        watched = shell.rows("watch", "--group", "shop", "--from-beginning", "--for", "4")
        states = [row for row in watched if row["kind"] == "group-state"]
        assert (states[0]["state"], states[0]["members"], states[0]["lag"]) == ("Stable", 1, 0)
        assert "group-member-joined" in [row["kind"] for row in watched]
        explained = shell.ok("explain", "--group", "shop")
        assert "Why it rebalanced" in explained and "(client till) reads orders-0" in explained
        refused = shell.run("group", "reset-offsets", "shop", "--all-topics", "--to-latest")
        assert refused.returncode == 1 and "stop its members" in refused.stderr
        assert shell.run("group", "delete", "shop").returncode == 1
        async with Admin(cluster.bootstrap) as admin:
            with pytest.raises(UnknownMemberIdError, match="has members"):
                await admin.alter_group_offsets("shop", {TopicPartition("orders", 0): 0})
    unknown = shell.run("group", "reset-offsets", "nothing", "--all-topics", "--to-latest")
    assert unknown.returncode == 1 and "there is no group" in unknown.stderr
    missing = shell.run("group", "describe", "nothing")
    assert missing.returncode == 1 and "there is no group" in missing.stderr


async def test_members_without_partitions_are_described_too(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    shell = Shell(cluster.bootstrap, tmp_path)
    shell.ok("topic", "create", "single", "--partitions", "1", "--replication-factor", "3")
    options: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "group_id": "idle"}
    async with (
        Consumer("single", client_id="a", **options) as first,
        Consumer("single", client_id="b", **options) as second,
    ):
        rows: list[dict[str, object]] = []
        async with asyncio.timeout(60):
            while [row["topic"] for row in rows] != ["single", None]:  # as in a rebalance
                await asyncio.gather(first.poll(200), second.poll(200))
                rows = await asyncio.to_thread(shell.rows, "group", "describe", "idle")
        assert {row["client_id"] for row in rows} == {"a", "b"}


async def test_a_blocking_iteration_survives_rebalances(cluster: LocalCluster) -> None:
    await create_topic(cluster.bootstrap, "blocking", 4)
    async with Producer(cluster.bootstrap) as producer:
        for number in range(400):
            await producer.send("blocking", b"%d" % number, partition=number % 4)
        await producer.flush()
    seen = await asyncio.to_thread(_two_blocking_members, cluster.bootstrap)
    assert sorted(set(seen)) == sorted((p, o) for p in range(4) for o in range(100))


def _two_blocking_members(bootstrap: str) -> list[tuple[int, int]]:
    """One iterates slowly, another joins in the middle; both commit what they have done."""
    options: dict[str, Any] = {
        "bootstrap_servers": bootstrap, "group_id": "blocking-group",
        "auto_offset_reset": "earliest", "heartbeat_interval_ms": 300, "session_timeout_ms": 6_000,
        "auto_commit_interval_ms": 100,
    }  # fmt: skip
    seen: list[tuple[int, int]] = []
    with BlockingConsumer("blocking", **options) as first:
        for record in first:
            seen.append((record.partition, record.offset))
            time.sleep(0.005)
            if len(seen) == 50:
                break
        with BlockingConsumer("blocking", **options) as second:
            deadline = time.monotonic() + 60
            while len(set(seen)) < 400 and time.monotonic() < deadline:
                for consumer in (first, second):
                    for record in consumer.poll(timeout_ms=100, max_records=20):
                        seen.append((record.partition, record.offset))
            assert len(second.assignment()) == 2, second.health()
    return seen

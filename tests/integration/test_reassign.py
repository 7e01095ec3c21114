"""Partitions move between real brokers by the command line while records flow."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from barnabas import Admin, TopicPartition, sync
from barnabas_common.errors import NoReassignmentInProgressError
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import controller_id
from tests.support.real_cluster import real_cluster
from tests.support.shell import Shell
from tests.support.workload import Workload
from tests.support.zookeeper_client import zookeeper

pytestmark = pytest.mark.integration

TOPIC = "flights"
LEGACY = "/admin/reassign_partitions"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    config = {
        "zookeeper.session.timeout.ms": "2000",
        "replica.lag.time.max.ms": "3000",
        "log.segment.delete.delay.ms": "100",
    }
    directory: Path = tmp_path_factory.mktemp("cluster")
    with real_cluster(directory, config, brokers=4) as running:
        yield running


def folders(cluster: LocalCluster, broker_id: int) -> list[str]:
    """Return the topic's folders on a broker, including those about to be deleted."""
    directory = cluster.layout.data_directory(broker_id)
    return sorted(path.name for path in directory.glob(f"{TOPIC}-*"))


async def replicas(cluster: LocalCluster) -> list[list[int]]:
    async with Admin(cluster.bootstrap) as admin:
        return [p.replicas for p in (await admin.describe_topic(TOPIC)).partitions]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.05)


async def test_a_broker_is_emptied_under_load_and_filled_again(cluster: LocalCluster) -> None:
    shell = Shell(cluster.bootstrap)
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic(
            TOPIC,
            assignments={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]},
            configs={"min.insync.replicas": "2"},
        )
    workload = Workload(TOPIC, 3, cluster.bootstrap)
    async with workload:
        await workload.acked_in_every_partition(50)
        plan = await asyncio.to_thread(
            shell.ok, "reassign", "plan", "--brokers", "2,3,4", "-t", TOPIC
        )
        assert [p["replicas"] for p in json.loads(plan)["partitions"]] == [
            [4, 2, 3],
            [2, 3, 4],
            [3, 4, 2],
        ]
        moved = await asyncio.to_thread(
            shell.rows, "reassign", "execute", "-", "--throttle", "10000000", "--wait", stdin=plan
        )
        assert [row["target"] for row in moved] == [[4, 2, 3], [2, 3, 4], [3, 4, 2]]
        assert await replicas(cluster) == [[4, 2, 3], [2, 3, 4], [3, 4, 2]]

        async def empty() -> bool:
            return folders(cluster, 1) == []

        await until(empty)
        await workload.acked_in_every_partition(50)

        status = await asyncio.to_thread(shell.rows, "reassign", "status", "-", stdin=plan)
        assert [row["state"] for row in status] == ["complete"] * 3
        settings = await asyncio.to_thread(shell.rows, "config", "describe", "--topic", TOPIC)
        assert not [s for s in settings if "throttled" in str(s["name"]) and s["value"]]

        # The partition moves back, and the controller dies meanwhile.
        moves = ["--move", f"{TOPIC}-0=1,2,3", "--move", f"{TOPIC}-2=3,1,2"]
        await asyncio.to_thread(shell.ok, "reassign", "execute", *moves)
        controller = await controller_id(cluster.bootstrap)
        await asyncio.to_thread(cluster.kill, controller)
        await asyncio.to_thread(cluster.restart, controller)
        await asyncio.to_thread(shell.ok, "reassign", "status", "--wait", "--timeout", "60")
        assert await replicas(cluster) == [[1, 2, 3], [2, 3, 4], [3, 1, 2]]
        await workload.acked_in_every_partition(50)
    verdict = await workload.verdict()
    verdict.assert_good()
    assert not workload.failed


def test_a_cancelled_move_leaves_no_throttle(cluster: LocalCluster) -> None:
    shell = Shell(cluster.bootstrap)
    shell.ok("topic", "create", "slow", "--assignment", "0:1,2")
    shell.ok("produce", "slow", stdin=f"{'x' * 1000}\n" * 4000)  # more than one fetch may take
    shell.ok("reassign", "execute", "--move", "slow-0=3,2", "--throttle", "1000")
    (row,) = shell.rows("reassign", "status")
    assert row["state"] == "in progress"
    assert throttles(shell, "slow") != []
    cancelled = shell.run("reassign", "cancel", "--partition", "slow-0")
    assert (cancelled.returncode, cancelled.stdout) == (0, "cancelled slow-0\n")
    assert "throttle lifted: slow" in cancelled.stderr
    assert throttles(shell, "slow") == []


def throttles(shell: Shell, topic: str) -> list[object]:
    described = shell.rows("config", "describe", "--broker-default")
    described += [r for r in shell.rows("config", "describe", "--topic", topic) if r["value"]]
    return [row["name"] for row in described if "throttled" in str(row["name"])]


async def test_an_old_tool_asks_in_zookeeper(cluster: LocalCluster) -> None:
    wish = {"version": 1, "partitions": [{"topic": TOPIC, "partition": 1, "replicas": [2, 3, 1]}]}
    async with zookeeper(cluster) as session:
        for data in (b"nonsense", json.dumps(wish).encode()):
            await session.create(LEGACY, data)

            async def gone() -> bool:
                return await session.exists(LEGACY) is None

            await until(gone)

    async def moved() -> bool:
        return (await replicas(cluster))[1] == [2, 3, 1]

    await until(moved)  # brokers learn it one by one


async def test_what_is_wrong_is_said_with_kafkas_name(cluster: LocalCluster) -> None:
    shell = Shell(cluster.bootstrap)

    async def check(code: int, name: str, *arguments: str) -> None:
        result = await asyncio.to_thread(shell.run, *arguments)
        assert (result.returncode, name in result.stderr) == (code, True), (arguments, result)
        assert result.stdout == ""

    execute = ("reassign", "execute", "--move")
    await asyncio.gather(
        check(1, "INVALID_REPLICA_ASSIGNMENT", *execute, f"{TOPIC}-0=1,99"),
        check(1, "UNKNOWN_TOPIC_OR_PARTITION", *execute, f"{TOPIC}-77=1"),
        check(1, "UNKNOWN_TOPIC_OR_PARTITION", *execute, "nobody-0=1"),
        check(1, "NO_REASSIGNMENT_IN_PROGRESS", "reassign", "cancel", "--partition", f"{TOPIC}-0"),
        check(1, "not live", "reassign", "plan", "--brokers", "1,2,99"),
        check(2, "only 2 brokers", "reassign", "plan", "--brokers", "1,2", "-t", TOPIC),
        check(1, "INVALID_PARTITIONS", "topic", "alter", TOPIC, "--partitions", "3"),
        check(1, "segment.size", "topic", "alter", TOPIC, "-p", "9", "--set", "segment.size=1"),
    )
    assert await asyncio.to_thread(shell.rows, "reassign", "status") == []
    assert await asyncio.to_thread(shell.rows, "reassign", "cancel", "--all") == []


async def test_a_topic_grows(cluster: LocalCluster) -> None:
    shell = Shell(cluster.bootstrap)
    (row,) = await asyncio.to_thread(shell.rows, "topic", "alter", TOPIC, "--partitions", "5")
    assert row == {"topic": TOPIC, "partitions": 5}

    async def grown() -> bool:
        return len(await replicas(cluster)) == 5  # brokers learn it one by one

    await until(grown)
    assert all(len(set(ids)) == 3 for ids in await replicas(cluster))


def test_the_blocking_admin_does_all_of_it_too(cluster: LocalCluster) -> None:
    with sync.Admin(cluster.bootstrap) as admin:
        admin.create_topic("still", assignments={0: [1]})
        admin.create_partitions("still", 2, assignments={1: [2]})
        admin.alter_partition_reassignments({TopicPartition("still", 0): [2, 3]})
        deadline = time.monotonic() + 20
        while admin.list_partition_reassignments():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        wanted = [[2, 3], [2]]
        while [p.replicas for p in admin.describe_topics(["still"])[0].partitions] != wanted:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(NoReassignmentInProgressError):
            admin.alter_partition_reassignments({TopicPartition("still", 0): None})

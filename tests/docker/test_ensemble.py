"""Three ZooKeeper nodes in containers: the one that leads them is killed, and comes back."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from barnabas import Admin
from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, docker

from tests.support.cluster_state import create_topic, wait_until_in_sync
from tests.support.compose import BOOTSTRAP, running, wait_until_healthy
from tests.support.workload import Workload

pytestmark = [pytest.mark.docker, pytest.mark.slow]

OPTIONS = ("--env-file", "docker/ensemble.env", "--profile", "ensemble")
NODES = ["zookeeper", "zookeeper2", "zookeeper3"]
MODE = "exec 3<>/dev/tcp/127.0.0.1/2181; echo srvr >&3; grep Mode <&3"


@pytest.fixture(scope="module")
def compose() -> Iterator[ComposeCluster]:
    with running(options=OPTIONS) as cluster:
        yield cluster


def modes(compose: ComposeCluster, nodes: list[str]) -> dict[str, str]:
    """Return what each node is: leader or follower."""
    told = {node: compose.execute(node, "bash", "-c", MODE) for node in nodes}
    return {node: mode.partition(":")[2].strip() for node, mode in told.items()}


async def test_the_cluster_outlives_the_leader_of_the_ensemble(compose: ComposeCluster) -> None:
    assert compose.zookeepers == NODES
    found = modes(compose, NODES)
    assert sorted(found.values()) == ["follower", "follower", "leader"]
    leader = next(node for node, mode in found.items() if mode == "leader")
    others = [node for node in NODES if node != leader]
    topic = "ensemble"
    await create_topic(BOOTSTRAP, topic, 3)
    async with Workload(topic, 3, BOOTSTRAP) as workload:
        await workload.acked_in_every_partition(50)
        await asyncio.to_thread(docker, "kill", compose.container(leader))
        await workload.acked_in_every_partition(50)
        async with asyncio.timeout(60), Admin(bootstrap_servers=BOOTSTRAP) as admin:
            await admin.create_topic("without-the-leader", 3, 3)
        now = await asyncio.to_thread(modes, compose, others)
        assert sorted(now.values()) == ["follower", "leader"]
        await asyncio.to_thread(docker, "start", compose.container(leader))
        await asyncio.to_thread(wait_until_healthy, compose)
        await wait_until_in_sync(BOOTSTRAP, topic, within=60)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()
    deadline = time.monotonic() + 60
    while (await asyncio.to_thread(modes, compose, [leader]))[leader] != "follower":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.5)

"""A partition's state znode is written by another tool while its leader serves.

The controller finds out at the next change of the ISR, and the leader hears of it.
"""

import asyncio

import pytest
from barnabas_common.events import EventKind
from barnabas_controller.store import znodes

from tests.support.whole_cluster import TP
from tests.support.zookeeper_scene import Scene, controller, data, in_a_cluster

PATH = znodes.state_path(TP)


@pytest.mark.parametrize("renewed", [True, False], ids=["another controller", ""])
@pytest.mark.parametrize("damaged", [True, False], ids=["damaged and mended", "written again"])
@pytest.mark.parametrize("seed", range(3))
def test_a_leader_whose_state_was_rewritten_changes_its_isr(
    seed: int, damaged: bool, renewed: bool
) -> None:
    """A follower stands still for longer than `replica.lag.time.max.ms`."""

    async def test(scene: Scene) -> None:
        await scene.whole()
        zookeeper, good = scene.cluster.zookeeper, data(scene.cluster, PATH)
        if damaged:
            zookeeper.put(PATH, b"nonsense")
            await asyncio.sleep(3)
        zookeeper.put(PATH, good)
        if renewed:
            zookeeper.delete(znodes.CONTROLLER)
            await asyncio.sleep(3)
        follower = next(b for b in (1, 2, 3) if b != scene.leader())
        scene.cluster.network.cut(scene.cluster.host(follower), scene.cluster.host(scene.leader()))
        await scene.produce()
        scene.cluster.network.heal(scene.cluster.host(follower), scene.cluster.host(scene.leader()))
        await scene.check()

    in_a_cluster(test, seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_leader_whose_change_was_refused_is_not_forgotten_by_the_next_controller(
    seed: int,
) -> None:
    """Its change is refused while the znode is damaged, and it waits for another state. When the
    znode is mended, the controller that would have sent it has been replaced."""

    async def test(scene: Scene) -> None:
        await scene.whole()
        cluster = scene.cluster
        good = data(cluster, PATH)
        cluster.zookeeper.put(PATH, b"nonsense")
        leader, active = scene.leader_in_fact(), controller(cluster)
        follower = next(b for b in (1, 2, 3) if b not in (leader, active))
        link = cluster.host(follower), cluster.host(leader)
        cluster.network.cut(*link)
        producing = asyncio.ensure_future(scene.produce())
        async with asyncio.timeout(30):
            while not scene.events(EventKind.ISR_CHANGE_REFUSED):
                await asyncio.sleep(0.1)
        cluster.network.heal(*link)
        await producing
        cluster.zookeeper.delete(znodes.CONTROLLER)
        cluster.zookeeper.put(PATH, good)
        await asyncio.sleep(5)
        cluster.network.cut(*link)
        await scene.produce()
        cluster.network.heal(*link)
        await scene.check()

    in_a_cluster(test, seed)


def test_a_leader_that_cannot_read_the_state_reports_it_once() -> None:
    """It cannot reach the controller, and tries to write the state itself, again and again."""

    async def test(scene: Scene) -> None:
        await scene.whole()
        cluster, leader = scene.cluster, scene.leader_in_fact()
        if controller(cluster) == leader:
            cluster.zookeeper.delete(znodes.CONTROLLER)
            await asyncio.sleep(3)
        good, others = data(cluster, PATH), [b for b in (1, 2, 3) if b != leader]
        cluster.zookeeper.put(PATH, b"nonsense")
        for other in others:
            cluster.network.cut(cluster.host(other), cluster.host(leader))
        producing = asyncio.ensure_future(scene.produce())
        await asyncio.sleep(30)
        by_the_leader = [
            event for event in scene.events(EventKind.ZNODE_MALFORMED) if event.broker_id == leader
        ]
        assert len(by_the_leader) <= 2, "as a leader, and perhaps as the controller"
        cluster.zookeeper.put(PATH, good)
        for other in others:
            cluster.network.heal(cluster.host(other), cluster.host(leader))
        await producing
        await scene.check()

    in_a_cluster(test)

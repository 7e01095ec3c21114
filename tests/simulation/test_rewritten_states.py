"""A partition's state znode is written by another tool while its leader serves.

The controller finds out at the next change of the ISR, and the leader hears of it.
"""

import asyncio

import pytest
from barnabas_controller.store import znodes

from tests.simulation.test_restored_zookeeper import Scene, data, in_a_cluster
from tests.support.whole_cluster import TP

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

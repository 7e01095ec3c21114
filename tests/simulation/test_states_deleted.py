"""A partition's state znode is deleted by hand while the brokers run, and perhaps created again.

Its version, the partition epoch, is lower then than what the brokers know.
"""

import asyncio

import pytest
from barnabas_controller.store import znodes
from barnabas_simulator.campaign import state

from tests.support.whole_cluster import TP
from tests.support.zookeeper_scene import (
    Scene,
    controller,
    data,
    in_a_cluster,
    leave_to_others,
    made_again,
    next_controller,
)

PATH = znodes.state_path(TP)


async def one_behind(scene: Scene) -> tuple[int, int, int]:
    """Take the second replica out of the ISR, without an election; return leader, late, other."""
    cluster = scene.cluster
    await scene.whole()
    leader, late, other = state.partition_states(cluster)[TP].replicas
    assert leader == scene.leader()
    cluster.network.cut(cluster.host(late), cluster.host(leader))
    await scene.produce()
    assert set(state.partition_states(cluster)[TP].state.isr) == {leader, other}
    return leader, late, other


async def the_leader_dies(scene: Scene, leader: int, late: int) -> None:
    """Nothing acknowledged is lost, although the late replica could be elected meanwhile."""
    cluster = scene.cluster
    await leave_to_others(scene, leader)
    cluster.network.heal(cluster.host(late), cluster.host(leader))
    cluster.start_broker(leader)
    await scene.check()


@pytest.mark.parametrize("renewed", [True, False], ids=["another controller", ""])
@pytest.mark.parametrize("again", [True, False], ids=["created again", "deleted"])
@pytest.mark.parametrize("elections", [0, 3])
def test_the_next_leader_serves(elections: int, again: bool, renewed: bool) -> None:
    async def test(scene: Scene) -> None:
        await scene.whole()
        for _ in range(elections):
            await scene.restart_leader()
        zookeeper = scene.cluster.zookeeper
        if again:
            made_again(scene.cluster, PATH, data(scene.cluster, PATH))
        else:
            zookeeper.delete(PATH)
        if renewed:
            await next_controller(scene)
        await leave_to_others(scene, leader := scene.leader_in_fact())
        await scene.produce()
        scene.cluster.start_broker(leader)
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("how", ["deleted", "created again", "created again, another controller"])
def test_a_leader_changes_its_isr(how: str) -> None:
    """A follower stands still for longer than `replica.lag.time.max.ms`, twice."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        leader, follower, _ = await one_behind(scene)
        cluster.network.heal(cluster.host(follower), cluster.host(leader))
        await scene.whole()
        if how == "deleted":
            cluster.zookeeper.delete(PATH)
        else:
            made_again(cluster, PATH, data(cluster, PATH))
        if how == "created again, another controller":
            await next_controller(scene)
        cluster.network.cut(cluster.host(follower), cluster.host(leader))
        await scene.produce()
        cluster.network.heal(cluster.host(follower), cluster.host(leader))
        await scene.check()

    in_a_cluster(test)


def test_a_replica_that_had_left_the_isr_does_not_lead_after_the_next_controller() -> None:
    """The partition seems to be new: all replicas that are online would be in its ISR."""

    async def test(scene: Scene) -> None:
        leader, late, _ = await one_behind(scene)
        scene.cluster.zookeeper.delete(PATH)
        await next_controller(scene)
        while controller(scene.cluster) == leader:  # with it, another one would be elected
            await next_controller(scene)
        await the_leader_dies(scene, leader, late)

    in_a_cluster(test)


@pytest.mark.parametrize("first", ["late", "leader"])
def test_a_replica_that_had_left_the_isr_does_not_lead_after_a_restart_of_all(first: str) -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        leader, late, other = await one_behind(scene)
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        cluster.zookeeper.delete(PATH)
        cluster.network.heal(cluster.host(late), cluster.host(leader))
        order = [late, other, leader] if first == "late" else [leader, late, other]
        for broker_id in order:
            cluster.start_broker(broker_id)
            await asyncio.sleep(10)  # long enough to be elected, rightly or wrongly
        await scene.check()

    in_a_cluster(test)

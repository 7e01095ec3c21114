"""The state of a partition is written back by hand under the leader epoch that is in force.

Its ISR names a replica that has left it since.
"""

import pytest
from barnabas_simulator.campaign import state

from tests.simulation.test_states_deleted import PATH, one_behind, the_leader_dies
from tests.support.whole_cluster import TP
from tests.support.zookeeper_scene import Scene, data, in_a_cluster, made_again, next_controller


@pytest.mark.parametrize("renewed", [True, False], ids=["another controller", ""])
@pytest.mark.parametrize("again", [True, False], ids=["created again", "written"])
@pytest.mark.parametrize("elections", [0, 2])
def test_the_replica_does_not_lead_without_the_records(
    elections: int, again: bool, renewed: bool
) -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        await scene.whole()
        for _ in range(elections):
            await scene.restart_leader()
        while scene.leader() != state.partition_states(cluster)[TP].replicas[0]:
            await scene.restart_leader()
        older = data(cluster, PATH)
        leader, late, _ = await one_behind(scene)
        if again:
            made_again(cluster, PATH, older)
        else:
            cluster.zookeeper.put(PATH, older)
        if renewed:
            await next_controller(scene)
        await the_leader_dies(scene, leader, late)

    in_a_cluster(test)

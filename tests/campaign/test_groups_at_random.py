"""Raw members under random faults; and the ledger that judges them, tested on planted faults."""

import pytest
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import in_cluster
from tests.support.group_chaos import GroupChaos, Ledger
from tests.support.raw_groups import Coordinators


async def story_of(cluster: SimulatedCluster, coordinators: Coordinators, seed: int) -> Ledger:
    chaos = GroupChaos(cluster, coordinators, seed)
    await chaos.run(300.0)
    await chaos.settle()
    return chaos.ledger


@pytest.mark.parametrize("seed", range(6))
def test_a_group_under_faults_keeps_its_promises_and_settles(seed: int) -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> Ledger:
        return await story_of(cluster, coordinators, seed)

    ledger = in_cluster(story, seed=seed, replica_lag_time_max_ms="5000")
    assert not ledger.violations
    assert ledger.commits > 50
    assert ledger.newest_generation > 5


def test_the_ledger_notices_two_owners_of_a_partition() -> None:
    ledger = Ledger()
    ledger.assigned(1, "a", [0, 1])
    ledger.assigned(2, "b", [0, 1])
    assert not ledger.violations
    ledger.assigned(2, "a", [1])
    assert len(ledger.violations) == 1


def test_the_ledger_notices_a_commit_of_an_old_generation_and_a_lost_one() -> None:
    ledger = Ledger(newest_generation=3)
    ledger.committed(3, 3, partition=0, offset=10)
    ledger.check_end({0: 11})
    assert not ledger.violations
    ledger.committed(2, 3, partition=0, offset=12)
    assert len(ledger.violations) == 1
    ledger.check_end({0: 11})
    ledger.check_end({})
    assert len(ledger.violations) == 3

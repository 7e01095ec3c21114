"""Zxids of an ensemble of ZooKeeper servers, which exceed 32 bits from the first on."""

import pytest
from barnabas_common.events import EventKind
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support import whole_cluster


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_leader_that_died_comes_back(monkeypatch: pytest.MonkeyPatch, power_loss: bool) -> None:
    clusters = []

    class Ensemble(SimulatedCluster):
        async def start(self) -> None:
            clusters.append(self)
            self.zookeeper.tree.zxid = 5 << 32
            await super().start()

    monkeypatch.setattr(whole_cluster, "SimulatedCluster", Ensemble)
    run(whole_cluster.story(1, power_loss), seed=1, max_time=600.0)
    (cluster,) = clusters
    malformed = [e for e in cluster.events() if e.kind is EventKind.ZNODE_MALFORMED]
    assert not malformed
    assert len(cluster.zookeeper.tree.node("/brokers/ids").children) == 3

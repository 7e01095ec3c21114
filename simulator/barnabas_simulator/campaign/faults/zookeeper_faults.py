"""Faults of the ZooKeeper ensemble and of its data; each method returns how to end the fault."""

import random
from collections.abc import Callable

from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.faults.znode_faults import ZnodeFaults
from barnabas_simulator.cluster import SimulatedCluster

Undo = Callable[[], None]


class ZooKeeperFaults:
    """`resolve` returns the running broker that a target means."""

    def __init__(self, cluster: SimulatedCluster, resolve: Callable[[str], int | None]) -> None:
        self.znodes = ZnodeFaults(cluster, resolve)
        self._cluster = cluster
        self._resolve = resolve

    def strike(self, fault: Fault) -> Undo | None:
        """Start a fault; returns how to end it, or None if it is impossible now."""
        match fault.kind:
            case FaultKind.LAG_ZOOKEEPER:
                return self._lag(fault)
            case FaultKind.SPOIL_ZNODE:
                return self.znodes.spoil(fault)
            case FaultKind.DELETE_ZNODE:
                return self.znodes.delete(fault)
            case FaultKind.SET_BACK_EPOCH:
                return self.znodes.set_back(fault)
            case _:
                raise ValueError(f"not a fault of ZooKeeper: {fault}")

    def _lag(self, fault: Fault) -> Undo | None:
        """Let the server to which a broker is connected fall behind."""
        victim = self._resolve(fault.target)
        if victim is None:
            return None
        host, chance = self._cluster.host(victim), random.Random(str(fault))
        return self._cluster.zookeeper.lag(host, float(fault.other), chance)

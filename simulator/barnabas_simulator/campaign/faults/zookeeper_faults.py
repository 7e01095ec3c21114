"""Faults of the ZooKeeper ensemble and of its data; each method returns how to end the fault."""

import random
from collections.abc import Callable
from functools import partial

from barnabas_simulator.campaign.faults import spoiling
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Undo, nothing
from barnabas_simulator.campaign.faults.znode_faults import ZnodeFaults
from barnabas_simulator.cluster import SimulatedCluster


class ZooKeeperFaults:
    """`resolve` returns the running broker that a target means."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        resolve: Callable[[str], int | None],
        chance: random.Random,
    ) -> None:
        self.znodes = ZnodeFaults(cluster, resolve)
        self._cluster = cluster
        self._resolve = resolve
        self._chance = chance

    def has_damage(self) -> bool:
        """Whether a znode, or the settings of all brokers, are damaged now."""
        settings = self._cluster.zookeeper.tree.find(spoiling.SETTINGS_PATH)
        is_spoiled = settings is not None and settings.data in spoiling.BAD_SETTINGS
        return is_spoiled or bool(self.znodes.damaged)

    # ---- sessions

    def strike(self, fault: Fault, victim: int) -> Undo | None:
        """Start a fault of a broker's session; returns how to end it, or None if it has none."""
        if fault.kind is FaultKind.EXPIRE:
            self._cluster.expire_session(victim)
            return nothing
        # The next request breaks the connection, before it was applied or after.
        applied = fault.kind is FaultKind.LOSE_ZOOKEEPER_ANSWER
        is_struck = self._cluster.lose_next_zookeeper_request(victim, applied)
        return nothing if is_struck else None

    # ---- servers and data

    def strike_data(self, fault: Fault) -> Undo | None:
        """Start a fault; returns how to end it, or None if it is impossible now."""
        match fault.kind:
            case FaultKind.ZOOKEEPER_DOWN:
                return self._stop()
            case FaultKind.SPOIL_SETTINGS:
                return self._spoil_settings()
            case FaultKind.LAG_ZOOKEEPER:
                return self._lag(fault)
            case FaultKind.DAMAGE_ZNODE:
                return self.znodes.damage(fault)
            case FaultKind.DELETE_ZNODE:
                return self.znodes.delete(fault)
            case FaultKind.SET_BACK_EPOCH:
                return self.znodes.set_back(fault)
            case _:
                raise ValueError(f"not a fault of ZooKeeper: {fault}")

    def _stop(self) -> Undo | None:
        zookeeper = self._cluster.zookeeper
        if not zookeeper.running:
            return None
        zookeeper.stop()
        return zookeeper.start

    def _spoil_settings(self) -> Undo | None:
        if not self._cluster.zookeeper.running:
            return None
        spoiling.spoil_settings(self._cluster, self._chance)
        return partial(spoiling.write_settings, self._cluster)

    def _lag(self, fault: Fault) -> Undo | None:
        """Let the server to which a broker is connected fall behind."""
        victim = self._resolve(fault.target)
        if victim is None:
            return None
        host, chance = self._cluster.host(victim), fault.chance()
        return self._cluster.zookeeper.lag(host, float(fault.other), chance)

"""Faults of connections between two roles; each method returns how to end the fault."""

from collections.abc import Callable, Sequence

from barnabas_simulator.campaign import state
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Undo
from barnabas_simulator.campaign.faults.network_faults import NetworkFaults
from barnabas_simulator.cluster import SimulatedCluster

PATIENCE_SECONDS = (0.0, 0.05, 1.0)


class ConnectionFaults:
    """`resolve` returns the running broker that a target means."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        network: NetworkFaults,
        clients: Sequence[str],
        resolve: Callable[[str], int | None],
    ) -> None:
        self._cluster = cluster
        self._network = network
        self._clients = clients
        self._resolve = resolve

    def strike(self, fault: Fault) -> Undo | None:
        """Start a fault; returns how to end it, or None if it is impossible now."""
        if fault.kind is FaultKind.LATE_FRAMES:
            return self._hold_back(fault)
        return self._cut_controller(fault)

    def _hold_back(self, fault: Fault) -> Undo | None:
        """The target gives up its connections to the other, where its last frames arrive late."""
        sender, receiver = self._host(fault.target), self._host(fault.other)
        if sender is None or receiver is None:
            return None
        patience = fault.chance().choice(PATIENCE_SECONDS)
        return self._cluster.network.hold_back(sender, receiver, patience)

    def _host(self, target: str) -> str | None:
        if target in self._clients:
            return target
        broker = self._resolve(target)
        return None if broker is None else self._cluster.host(broker)

    def _cut_controller(self, fault: Fault) -> Undo | None:
        """Cut the first leader that is not the controller; ZooKeeper and all others hear both."""
        controller = self._resolve("controller")
        states = state.partition_states(self._cluster).values()
        leaders = dict.fromkeys(found.state.leader for found in states)
        victims = [b for b in leaders if b in self._cluster.running_brokers and b != controller]
        if controller is None or not victims:
            return None
        leader = self._resolve(fault.target)
        victim = leader if leader in victims else victims[0]
        ways = {"to": [(victim, controller)], "from": [(controller, victim)]}
        both = ways["to"] + ways["from"]
        return self._network.cut_between(ways.get(fault.other, both))

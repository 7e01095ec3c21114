"""Faults of the network: packets that are dropped, and a slow link.

The rules live in the network of a container. A container that restarts has a new one without them.
"""

from collections.abc import Sequence
from itertools import pairwise

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster
from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect
from barnabas_tools.chaos.faults.fault import Together
from barnabas_tools.chaos.faults.probe import bytes_per_second, passes
from barnabas_tools.chaos.faults.toolbox import Toolbox

_RATE_KBIT = 256
_SLOW_BYTES_PER_SECOND = 2 * _RATE_KBIT * 1000 // 8
_DEVICE = "eth0"


class Rules:
    """Rules of iptables in the network of a service, which can be taken back."""

    def __init__(self, tools: Toolbox, service: str) -> None:
        self._tools = tools
        self._service = service
        self._container = ""
        self._added: list[Sequence[str]] = []

    def add(self, rules: Sequence[Sequence[str]]) -> None:
        self._container = self._running_since()
        for rule in rules:
            self._added.append(rule)
            self._tools.in_network(self._service, "iptables", "-w", "-I", *rule)

    def remove(self) -> None:
        """Delete the rules, unless the container has restarted and so lost them."""
        if not self._added:
            return
        if self._tools.cluster.state(self._service) in ("running", "paused") and (
            self._running_since() == self._container
        ):
            for rule in self._added:
                self._tools.in_network(self._service, "iptables", "-w", "-D", *rule)
        self._added = []

    def _running_since(self) -> str:
        state = self._tools.cluster.inspect(self._service)["State"]
        return str(state["StartedAt"])


class OneWayCut:
    """`target` drops every packet that comes from `source`; the other direction passes."""

    def __init__(self, tools: Toolbox, source: str, target: str) -> None:
        self._tools = tools
        self._source = source
        self._target = target
        self._rules = Rules(tools, target)

    @property
    def name(self) -> str:
        return f"cut {self._source} -> {self._target}"

    def inject(self) -> None:
        address = self._tools.cluster.address(self._source)
        self._rules.add([("INPUT", "-s", address, "-j", "DROP")])

    def verify(self) -> str:
        if passes(self._tools, self._source, self._target):
            raise NotInEffect(f"{self.name}: a packet arrives")
        return f"no packet from {self._source} reaches {self._target}"

    def heal(self) -> None:
        self._rules.remove()


class Isolated:
    """A container that neither sends nor receives anything; its processes still run."""

    def __init__(self, tools: Toolbox, service: str) -> None:
        self._tools = tools
        self._service = service
        self._rules = Rules(tools, service)

    @property
    def name(self) -> str:
        return f"isolate {self._service}"

    def inject(self) -> None:
        self._rules.add(
            [("INPUT", "!", "-i", "lo", "-j", "DROP"), ("OUTPUT", "!", "-o", "lo", "-j", "DROP")]
        )

    def verify(self) -> str:
        peers = self._peers()
        for peer in peers:
            if passes(self._tools, self._service, peer):
                raise NotInEffect(f"{self.name}: {peer} receives its packets")
            if passes(self._tools, peer, self._service):
                raise NotInEffect(f"{self.name}: it receives packets from {peer}")
        return f"no packet passes between {self._service} and {', '.join(peers)}"

    def heal(self) -> None:
        self._rules.remove()

    def _peers(self) -> list[str]:
        cluster = self._tools.cluster
        services = [*cluster.brokers, *cluster.zookeepers]
        found = [
            service
            for service in services
            if service != self._service and cluster.state(service) == "running"
        ]
        if not found:
            raise FaultError(f"{self.name}: nothing else runs, so it cannot be verified")
        return found


def link_cut(tools: Toolbox, one: str, other: str) -> Together:
    """No packet passes between the two, in either direction; both reach everyone else."""
    cuts = [OneWayCut(tools, one, other), OneWayCut(tools, other, one)]
    return Together(f"cut {one} <-> {other}", cuts)


def ring(tools: Toolbox, cluster: ComposeCluster) -> Together:
    """Each broker drops what comes from the next one in a ring: no two see the same majority.

    ZooKeeper and clients reach all of them.
    """
    brokers = cluster.brokers
    neighbours = pairwise([*brokers, brokers[0]])
    return Together("ring", [OneWayCut(tools, after, before) for before, after in neighbours])


class SlowLink:
    """A container sends at 256 kbit/s, and its packets wait for up to 400 ms."""

    def __init__(self, tools: Toolbox, service: str) -> None:
        self._tools = tools
        self._service = service

    @property
    def name(self) -> str:
        return f"slow {self._service}"

    def inject(self) -> None:
        limit = ("rate", f"{_RATE_KBIT}kbit", "burst", "16kb", "latency", "400ms")
        self._qdisc("replace", "tbf", *limit)

    def verify(self) -> str:
        peer = next(each for each in self._tools.cluster.brokers if each != self._service)
        speed = bytes_per_second(self._tools, self._service, peer)
        if speed > _SLOW_BYTES_PER_SECOND:
            raise NotInEffect(f"{self.name}: it sends {speed} bytes a second")
        return f"{self._service} sends {speed} bytes a second"

    def heal(self) -> None:
        if self._tools.cluster.state(self._service) not in ("running", "paused"):
            return
        if "tbf" in self._tools.in_network(self._service, "tc", "qdisc", "show", "dev", _DEVICE):
            self._qdisc("del")

    def _qdisc(self, action: str, *limit: str) -> None:
        self._tools.in_network(self._service, "tc", "qdisc", action, "dev", _DEVICE, "root", *limit)

"""The kinds of faults that a run can draw, by name, and how long each lasts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster
from barnabas_tools.chaos.faults.controls import LastInSync, LeaderAhead, StaleHighWatermark
from barnabas_tools.chaos.faults.disks import FullDisk, Wiped
from barnabas_tools.chaos.faults.errors import FaultError
from barnabas_tools.chaos.faults.fault import Fault
from barnabas_tools.chaos.faults.network import Isolated, OneWayCut, SlowLink, link_cut, ring
from barnabas_tools.chaos.faults.processes import Killed, Paused, Restarted, Stopped
from barnabas_tools.chaos.faults.scenarios import (
    LeaderCutFromController,
    RollingRestart,
    chase_the_controller,
    chase_the_leader,
)
from barnabas_tools.chaos.faults.toolbox import Toolbox
from barnabas_tools.chaos.faults.zookeeper import (
    SessionEnded,
    ZnodeDeleted,
    registration,
    zookeeper_killed,
)
from barnabas_tools.chaos.run.client_processes import ClientKilled, ClientProcesses

_AT_ONCE = (0.0, 0.0)
_SHORT = (1.0, 5.0)
_LONG = (2.0, 10.0)
_CHASES = 2


@dataclass(frozen=True)
class Scene:
    """What faults are drawn from."""

    cluster: ComposeCluster
    tools: Toolbox
    clients: ClientProcesses
    topics: tuple[str, ...]
    random: Random

    def broker(self) -> str:
        return self.random.choice(self.cluster.brokers)

    def two_brokers(self) -> tuple[str, str]:
        one, other = self.random.sample(self.cluster.brokers, 2)
        return one, other

    def topic(self) -> str:
        return self.random.choice(self.topics)

    def leader(self) -> str:
        topic = self.topic()
        leader = self.cluster.leader(topic, 0)
        if leader is None:
            raise FaultError(f"{topic}-0 has no leader")
        return leader

    def client(self, *roles: str) -> ClientKilled:
        return ClientKilled(self.clients, self.random.choice(self.clients.names(*roles)))


@dataclass(frozen=True)
class Kind:
    """How to make one, and between how many seconds it lasts once it is verified."""

    make: Callable[[Scene], Fault]
    lasts: tuple[float, float] = _LONG


MENU: Mapping[str, Kind] = {
    "kill": Kind(lambda s: Killed(s.cluster, s.broker())),
    "stop": Kind(lambda s: Stopped(s.cluster, s.broker())),
    "pause": Kind(lambda s: Paused(s.cluster, s.broker())),
    "restart": Kind(lambda s: Restarted(s.cluster, s.broker()), _AT_ONCE),
    "isolate": Kind(lambda s: Isolated(s.tools, s.broker())),
    "one-way": Kind(lambda s: OneWayCut(s.tools, *s.two_brokers())),
    "link": Kind(lambda s: link_cut(s.tools, *s.two_brokers())),
    "ring": Kind(lambda s: ring(s.tools, s.cluster)),
    "slow": Kind(lambda s: SlowLink(s.tools, s.broker())),
    "leader-controller": Kind(lambda s: LeaderCutFromController(s.tools, s.topic())),
    "wipe": Kind(lambda s: Wiped(s.tools, s.broker()), _SHORT),
    "full-disk": Kind(lambda s: FullDisk(s.tools, s.broker()), _SHORT),
    "zookeeper": Kind(lambda s: zookeeper_killed(s.cluster)),
    "session": Kind(lambda s: SessionEnded(s.cluster, s.broker()), _AT_ONCE),
    "controller-znode": Kind(lambda s: ZnodeDeleted(s.cluster, "/controller"), _AT_ONCE),
    "registration-znode": Kind(
        lambda s: ZnodeDeleted(s.cluster, registration(s.broker())), _AT_ONCE
    ),
    "chase-leader": Kind(
        lambda s: chase_the_leader(s.cluster, s.topic(), rounds=_CHASES), _AT_ONCE
    ),
    "chase-controller": Kind(lambda s: chase_the_controller(s.cluster, rounds=_CHASES), _AT_ONCE),
    "rolling-restart": Kind(lambda s: RollingRestart(s.cluster), _AT_ONCE),
    "kill-producer": Kind(lambda s: s.client("producer", "transactor"), _SHORT),
    "kill-member": Kind(lambda s: s.client("member"), _SHORT),
    # positive controls
    "leader-ahead": Kind(lambda s: LeaderAhead(s.cluster, s.topic()), _AT_ONCE),
    "last-in-sync": Kind(lambda s: LastInSync(s.cluster, s.topic()), _AT_ONCE),
    "stale-high-watermark": Kind(lambda s: StaleHighWatermark(s.tools, s.topic()), _AT_ONCE),
    "pause-leader": Kind(lambda s: Paused(s.cluster, s.leader()), (2.5, 3.5)),
}


def parse_mix(text: str) -> dict[str, int]:
    """Parse `kill=3,pause`: kinds with their weights. Raises ValueError."""
    mix: dict[str, int] = {}
    for part in text.split(","):
        name, _, weight = part.strip().partition("=")
        if name not in MENU:
            raise ValueError(f"no fault is called {name!r}; there are {', '.join(sorted(MENU))}")
        if weight and not weight.isdecimal():
            raise ValueError(f"the weight of {name} is {weight!r}, not a number")
        mix[name] = int(weight or 1)
    if not any(mix.values()):
        raise ValueError("every weight is 0")
    return mix

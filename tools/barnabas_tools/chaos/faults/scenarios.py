"""Faults that follow the cluster: its leader, its controller, each of its brokers in turn."""

from collections.abc import Callable

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, docker, wait_until
from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect
from barnabas_tools.chaos.faults.fault import Together
from barnabas_tools.chaos.faults.network import link_cut
from barnabas_tools.chaos.faults.processes import Killed
from barnabas_tools.chaos.faults.toolbox import Toolbox

_ROUNDS = 3
_IN_SYNC_SECONDS = 120.0
_SUCCESSOR_SECONDS = 60.0
_STOP_SECONDS = 30


class Chase:
    """Kills the broker in a role, waits for its successor, starts it, and kills the successor."""

    def __init__(
        self,
        cluster: ComposeCluster,
        role: str,
        holder: Callable[[], str | None],
        rounds: int = _ROUNDS,
    ) -> None:
        self._cluster = cluster
        self._role = role
        self._holder = holder
        self._rounds = rounds
        self._killed: list[str] = []

    @property
    def name(self) -> str:
        return f"chase {self._role}"

    def inject(self) -> None:
        self._killed = []
        for _ in range(self._rounds):
            self._wait_until_in_sync()
            victim = self._holder()
            if victim is None:
                raise FaultError(f"{self.name}: no broker has the role")
            killed = Killed(self._cluster, victim)
            killed.inject()
            killed.verify()
            self._killed.append(victim)
            wait_until(
                f"{self._role} is another than {victim}",
                lambda victim=victim: self._holder_now() not in (None, victim),  # type: ignore[misc]
                _SUCCESSOR_SECONDS,
            )
            self._cluster.start(victim)

    def verify(self) -> str:
        if len(self._killed) != self._rounds:
            raise NotInEffect(f"{self.name}: {len(self._killed)} of {self._rounds} were killed")
        return f"killed in turn: {', '.join(self._killed)}"

    def heal(self) -> None:
        for service in self._cluster.brokers:
            self._cluster.start(service)

    def _holder_now(self) -> str | None:
        try:
            return self._holder()
        except FaultError:
            return None

    def _wait_until_in_sync(self) -> None:
        wait_until("every replica is in sync", self._cluster.in_sync, _IN_SYNC_SECONDS)


def chase_the_leader(
    cluster: ComposeCluster, topic: str, partition: int = 0, rounds: int = _ROUNDS
) -> Chase:
    """Kill the leader of a partition, then the next one, and so on."""

    def holder() -> str | None:
        return cluster.leader(topic, partition)

    return Chase(cluster, f"the leader of {topic}-{partition}", holder, rounds)


def chase_the_controller(cluster: ComposeCluster, rounds: int = _ROUNDS) -> Chase:
    """Kill the controller, then the next one, and so on."""
    return Chase(cluster, "the controller", cluster.controller, rounds)


class RollingRestart:
    """Stops and starts each broker in turn; the next one when every replica is in sync."""

    name = "rolling restart"

    def __init__(self, cluster: ComposeCluster) -> None:
        self._cluster = cluster
        self._restarted: list[str] = []

    def inject(self) -> None:
        self._restarted = []
        for service in self._cluster.brokers:
            wait_until("every replica is in sync", self._cluster.in_sync, _IN_SYNC_SECONDS)
            before = self._started_at(service)
            docker("restart", "--time", str(_STOP_SECONDS), self._cluster.container(service))
            if self._started_at(service) != before:
                self._restarted.append(service)
        wait_until("every replica is in sync", self._cluster.in_sync, _IN_SYNC_SECONDS)

    def verify(self) -> str:
        if self._restarted != self._cluster.brokers:
            raise NotInEffect(f"{self.name}: restarted {self._restarted}")
        return f"restarted in turn: {', '.join(self._restarted)}"

    def heal(self) -> None:
        for service in self._cluster.brokers:
            self._cluster.start(service)

    def _started_at(self, service: str) -> str:
        return str(self._cluster.inspect(service)["State"]["StartedAt"])


class LeaderCutFromController:
    """No packet passes between the leader of a partition and the controller.

    A partition that the controller itself leads is passed over.
    """

    def __init__(self, tools: Toolbox, topic: str) -> None:
        self._tools = tools
        self._topic = topic
        self._cut: Together | None = None

    @property
    def name(self) -> str:
        return f"cut a leader of {self._topic} <-> controller"

    def inject(self) -> None:
        cluster = self._tools.cluster
        controller = cluster.controller()
        led = {f"broker{each.leader_id}" for each in cluster.partitions(self._topic).values()}
        others = sorted((led & set(cluster.brokers)) - {controller})
        if not others:
            raise FaultError(f"{self.name}: {controller} leads every partition, and is controller")
        self._cut = link_cut(self._tools, others[0], controller)
        self._cut.inject()

    def verify(self) -> str:
        if self._cut is None:
            raise NotInEffect(f"{self.name}: it was not injected")
        return self._cut.verify()

    def heal(self) -> None:
        if self._cut is not None:
            self._cut.heal()
            self._cut = None

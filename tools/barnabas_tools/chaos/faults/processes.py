"""Faults of a container's process: killed, stopped, paused, restarted at once."""

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, docker
from barnabas_tools.chaos.faults.errors import NotInEffect

_STOP_SECONDS = 30
_CLEAN_CODES = (0, 143)  # Java exits with 143 after SIGTERM
_KILLED = 137


class _OfAProcess:
    """What these faults have in common: their service, and that healing starts it."""

    verb = ""

    def __init__(self, cluster: ComposeCluster, service: str) -> None:
        self._cluster = cluster
        self._service = service

    @property
    def name(self) -> str:
        return f"{self.verb} {self._service}"

    def heal(self) -> None:
        self._cluster.start(self._service)

    def _ended(self, codes: tuple[int, ...]) -> str:
        state = self._cluster.inspect(self._service)["State"]
        status, code = state["Status"], state["ExitCode"]
        if status != "exited" or code not in codes:
            raise NotInEffect(f"{self.name}: it is {status}, exit code {code}")
        return f"{self._service} exited with {code}"


class Killed(_OfAProcess):
    """SIGKILL; Docker does not start it again by itself."""

    verb = "kill"

    def inject(self) -> None:
        docker("kill", "--signal", "KILL", self._cluster.container(self._service))

    def verify(self) -> str:
        return self._ended((_KILLED,))


class Stopped(_OfAProcess):
    """SIGTERM, and enough time to shut down."""

    verb = "stop"

    def inject(self) -> None:
        docker("stop", "--time", str(_STOP_SECONDS), self._cluster.container(self._service))

    def verify(self) -> str:
        return self._ended(_CLEAN_CODES)


class Paused(_OfAProcess):
    """All threads are frozen; connections stay open."""

    verb = "pause"

    def inject(self) -> None:
        docker("pause", self._cluster.container(self._service))

    def verify(self) -> str:
        if (state := self._cluster.state(self._service)) != "paused":
            raise NotInEffect(f"{self.name}: it is {state}")
        return f"{self._service} is paused"

    def heal(self) -> None:
        if self._cluster.state(self._service) == "paused":
            docker("unpause", self._cluster.container(self._service))


class Restarted(_OfAProcess):
    """SIGKILL and a start right after it, long before its session expires."""

    verb = "restart"
    _before = ""

    def inject(self) -> None:
        container = self._cluster.container(self._service)
        self._before = self._started_at()
        docker("kill", "--signal", "KILL", container)
        docker("start", container)

    def verify(self) -> str:
        started = self._started_at()
        if not self._before or started == self._before:
            raise NotInEffect(f"{self.name}: it runs since {started}")
        return f"{self._service} runs since {started}, before since {self._before}"

    def _started_at(self) -> str:
        return str(self._cluster.inspect(self._service)["State"]["StartedAt"])

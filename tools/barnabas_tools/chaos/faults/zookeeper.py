"""Faults of ZooKeeper and of what the cluster stores in it."""

import json
from typing import Any

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, wait_until
from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect
from barnabas_tools.chaos.faults.fault import Together
from barnabas_tools.chaos.faults.processes import Killed

_INSIDE = ("python3", "-m", "barnabas_tools.chaos.faults.inside")
_SEEN_SECONDS = 10.0


def zookeeper_killed(cluster: ComposeCluster) -> Together:
    """Every ZooKeeper node is killed."""
    killed = [Killed(cluster, service) for service in cluster.zookeepers]
    return Together("kill ZooKeeper", killed)


def registration(service: str) -> str:
    """The znode of a broker's registration."""
    return f"/brokers/ids/{service.removeprefix('broker')}"


class SessionEnded:
    """ZooKeeper drops the session of a broker, as after an expiry; the broker opens another."""

    def __init__(self, cluster: ComposeCluster, service: str) -> None:
        self._cluster = cluster
        self._service = service
        self._session = ""

    @property
    def name(self) -> str:
        return f"expire the session of {self._service}"

    def inject(self) -> None:
        self._session = str(_inside(self._cluster, self._service, "expire")["session"])

    def verify(self) -> str:
        owner = self._owner()
        if not self._session or owner == self._session:
            raise NotInEffect(f"{self.name}: session {owner} still owns its registration")
        return f"session {self._session} of {self._service} is over"

    def heal(self) -> None:
        """Wait until the broker is registered again, which it does by itself."""
        if self._session:
            gone = ("0x0", self._session)
            what = f"{self._service} is registered again"
            wait_until(what, lambda: self._owner() not in gone, within=60)
            self._session = ""

    def _owner(self) -> str:
        path = registration(self._service)
        return str(_inside(self._cluster, self._service, "stat", path)["owner"])


class ZnodeDeleted:
    """A znode is deleted behind the cluster's back, which creates it again.

    For the znodes that the cluster creates by itself: `/controller` and registrations.
    """

    def __init__(self, cluster: ComposeCluster, path: str) -> None:
        self._cluster = cluster
        self._path = path
        self._czxid = 0

    @property
    def name(self) -> str:
        return f"delete {self._path}"

    def inject(self) -> None:
        self._czxid = int(self._inside("delete")["czxid"])

    def verify(self) -> str:
        now = int(self._inside("stat")["czxid"])
        if self._czxid == 0 or now == self._czxid:
            raise NotInEffect(f"{self.name}: the znode of czxid {now} is there")
        return f"{self._path} of czxid {self._czxid} is gone"

    def heal(self) -> None:
        """Wait until the znode is there again."""
        if self._czxid:
            gone = (0, self._czxid)
            what = f"{self._path} is there again"
            wait_until(what, lambda: int(self._inside("stat")["czxid"]) not in gone, within=60)
            self._czxid = 0

    def _inside(self, command: str) -> dict[str, Any]:
        running = [each for each in self._cluster.brokers if self._cluster.state(each) == "running"]
        if not running:
            raise FaultError(f"{self.name}: no broker's container runs")
        return _inside(self._cluster, running[0], command, self._path)


def _inside(cluster: ComposeCluster, service: str, *command: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.execute(service, *_INSIDE, *command))
    return found

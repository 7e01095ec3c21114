"""Faults of a broker's volume: emptied, and full."""

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, docker
from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect
from barnabas_tools.chaos.faults.toolbox import Toolbox

_DATA = "/var/lib/barnabas"
_FILLER = f"{_DATA}/filler"
# Writes until nothing fits: large blocks first, then single pages.
_FILL = f"""
import errno, os, sys
with open("{_FILLER}", "ab", buffering=0) as filler:
    for size in (1 << 20, 4096):
        try:
            while filler.write(bytes(size)) == size:
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
"""
_FREE = f'import os; found = os.statvfs("{_DATA}"); print(found.f_bavail * found.f_frsize)'
_PAGE = 4096


class Wiped:
    """The broker is killed and its volume emptied; healing starts it without its logs."""

    def __init__(self, tools: Toolbox, service: str) -> None:
        self._tools = tools
        self._service = service

    @property
    def name(self) -> str:
        return f"wipe {self._service}"

    def inject(self) -> None:
        docker("kill", "--signal", "KILL", self._tools.cluster.container(self._service))
        self._tools.on_volumes(self._service, "find", _DATA, "-mindepth", "1", "-delete")

    def verify(self) -> str:
        state = self._tools.cluster.state(self._service)
        left = self._tools.on_volumes(self._service, "ls", "-A", _DATA).split()
        if state != "exited" or left:
            raise NotInEffect(f"{self.name}: it is {state}, its volume has {left}")
        return f"the volume of {self._service} is empty"

    def heal(self) -> None:
        self._tools.cluster.start(self._service)


class FullDisk:
    """The broker's volume has no room; healing makes room and restarts the broker.

    The volume must have a size, as those of `docker/chaos.yml`: the host's disk is never filled.
    """

    def __init__(self, tools: Toolbox, service: str) -> None:
        self._tools = tools
        self._service = service

    @property
    def name(self) -> str:
        return f"fill the disk of {self._service}"

    def inject(self) -> None:
        kind = self._tools.on_volumes(self._service, "stat", "-f", "-c", "%T", _DATA).strip()
        if kind != "tmpfs":
            raise FaultError(
                f"{self.name}: its volume has no size of its own ({kind});"
                " start the cluster with docker/chaos.yml"
            )
        self._tools.on_volumes(self._service, "python3", "-c", _FILL)

    def verify(self) -> str:
        free = int(self._tools.on_volumes(self._service, "python3", "-c", _FREE))
        if free >= _PAGE:
            raise NotInEffect(f"{self.name}: {free} bytes are free")
        return f"the volume of {self._service} has {free} bytes left"

    def heal(self) -> None:
        if self._tools.try_on_volumes(self._service, "test", "-e", _FILLER).code != 0:
            return
        self._tools.on_volumes(self._service, "rm", _FILLER)
        docker("restart", "--time", "30", self._tools.cluster.container(self._service))


def free_bytes(tools: Toolbox, cluster: ComposeCluster) -> dict[str, int]:
    """The room left in each broker's volume."""
    return {
        service: int(tools.on_volumes(service, "python3", "-c", _FREE))
        for service in cluster.brokers
    }

"""Runs programs of the image `barnabas-faults` in the network or with the volumes of a container.

So the images of brokers and ZooKeeper need no tools, and their processes no privileges.
"""

import subprocess
from collections.abc import Sequence

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, Done, run_command
from barnabas_tools.chaos.faults.errors import FaultError, ToolMissing

IMAGE = "barnabas-faults"
_NOT_FOUND = 127


class Toolbox:
    """Runs programs beside the containers of a cluster, as root of the image's container."""

    def __init__(self, cluster: ComposeCluster, image: str = IMAGE) -> None:
        self.cluster = cluster
        self.image = image

    def in_network(self, service: str, *command: str) -> str:
        """Run a program in the network of a service; it may change rules and queues."""
        return self._checked(command, self._run(self._network(service), command))

    def start_in_network(self, service: str, *command: str) -> "subprocess.Popen[str]":
        """Start a program in the network of a service; its output is a pipe."""
        return subprocess.Popen(
            ["docker", "run", "--rm", "-i", *self._network(service), self.image, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def on_volumes(self, service: str, *command: str) -> str:
        """Run a program with the volumes of a service, which need not run."""
        return self._checked(command, self.try_on_volumes(service, *command))

    def try_on_volumes(self, service: str, *command: str) -> Done:
        """As `on_volumes`; the program may fail."""
        container = self.cluster.container(service)
        return self._run(("--network", "none", "--volumes-from", container), command)

    def _network(self, service: str) -> tuple[str, ...]:
        if (state := self.cluster.state(service)) not in ("running", "paused"):
            raise FaultError(f"{service} has no network: it is {state}")
        return ("--network", f"container:{self.cluster.container(service)}", "--cap-add=NET_ADMIN")

    def _run(self, options: Sequence[str], command: Sequence[str]) -> Done:
        done = run_command(
            ["docker", "run", "--rm", "--pull=never", *options, self.image, *command]
        )
        if done.code == 125 and "No such image" in done.errors:
            raise ToolMissing(
                f"there is no image {self.image}; it is built by"
                " docker-compose -f docker-compose.yml -f docker/chaos.yml build disks"
            )
        if done.code == _NOT_FOUND:
            raise ToolMissing(f"{command[0]} is missing in the image {self.image}")
        return done

    def _checked(self, command: Sequence[str], done: Done) -> str:
        if done.code != 0:
            raise FaultError(f"{command[0]} in {self.image}: {done.last_line}")
        return done.output

"""The cluster of `docker-compose.yml`, as the faults see it. All functions block."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.sync.loop_thread import LoopThread
from barnabas_common.errors import TransportError
from barnabas_common.messages.metadata import MetadataResponse, PartitionMetadata

from barnabas_tools.chaos.faults.errors import FaultError, ToolMissing
from barnabas_tools.local.readiness import ask

BROKERS = ("broker1", "broker2", "broker3")
BOOTSTRAP = ("localhost:9092", "localhost:9093", "localhost:9094")
PROJECT_FILES = ("docker-compose.yml", "docker/chaos.yml")
_COMMAND_SECONDS = 600
_POLL_SECONDS = 0.2
_NOT_FOUND = (126, 127)  # what `docker run` and `docker exec` exit with if there is no such program


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        return ((self.errors or self.output).strip().splitlines() or [f"exit code {self.code}"])[-1]


def run_command(command: Sequence[str], folder: Path | None = None) -> Done:
    """Run a command to its end; raises ToolMissing if there is no such program."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise ToolMissing(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise FaultError(f"{' '.join(command)}: no end after {_COMMAND_SECONDS} s") from None
    return Done(done.returncode, done.stdout, done.stderr)


def docker(*arguments: str) -> str:
    """Run `docker` with these arguments; returns its output, raises FaultError with one line."""
    done = run_command(["docker", *arguments])
    if done.code != 0:
        raise FaultError(f"docker {arguments[0]}: {done.last_line}")
    return done.output


def compose_command() -> list[str]:
    """`docker compose` if Docker has the plugin, otherwise `docker-compose`."""
    plugin = run_command(["docker", "compose", "version"])
    return ["docker", "compose"] if plugin.code == 0 else ["docker-compose"]


class ComposeCluster:
    """The containers of one compose project; `options` are more of Compose's own."""

    def __init__(
        self,
        project: str,
        folder: Path,
        files: Sequence[str] = PROJECT_FILES,
        options: Sequence[str] = (),
    ) -> None:
        self.project = project
        self.folder = folder
        self._options = [*options, *(part for name in files for part in ("-f", name))]
        self._command: list[str] | None = None

    def compose(self, *arguments: str) -> str:
        """Run a command of Compose on this project; raises FaultError with its last lines."""
        if self._command is None:
            self._command = compose_command()
        command = [*self._command, "--project-name", self.project, *self._options, *arguments]
        done = run_command(command, self.folder)
        if done.code != 0:
            raise FaultError(f"{arguments[0]}: {(done.errors or done.output).strip()[-2000:]}")
        return done.output

    # Containers

    def find(self, service: str) -> str | None:
        """The id of the service's container, running or not."""
        labels = ("project=" + self.project, "service=" + service)
        filters = [part for each in labels for part in ("-f", f"label=com.docker.compose.{each}")]
        found = docker("ps", "--all", "--quiet", "--no-trunc", *filters).split()
        return found[0] if found else None

    def container(self, service: str) -> str:
        """The id of the service's container; raises FaultError if there is none."""
        found = self.find(service)
        if found is None:
            raise FaultError(f"there is no container of {service} in project {self.project}")
        return found

    def inspect(self, service: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(docker("inspect", self.container(service)))[0]
        return found

    def state(self, service: str) -> str:
        """`running`, `paused`, `exited` and so on."""
        return str(self.inspect(service)["State"]["Status"])

    def address(self, service: str) -> str:
        """The container's IP address; raises FaultError if it has none, as a stopped one."""
        networks = self.inspect(service)["NetworkSettings"]["Networks"].values()
        found = [each["IPAddress"] for each in networks if each["IPAddress"]]
        if not found:
            raise FaultError(f"{service} has no address: it is {self.state(service)}")
        return str(found[0])

    def start(self, service: str) -> None:
        """Start the service's container; nothing happens if it runs."""
        docker("start", self.container(service))

    def execute(self, service: str, *command: str) -> str:
        """Run a command in the service's container; raises ToolMissing if it is not there."""
        done = run_command(["docker", "exec", self.container(service), *command])
        if done.code in _NOT_FOUND:
            raise ToolMissing(f"{command[0]} is missing in the container of {service}")
        if done.code != 0:
            raise FaultError(f"{command[0]} in {service}: {done.last_line}")
        return done.output

    @property
    def brokers(self) -> list[str]:
        return [service for service in BROKERS if self.find(service)]

    @property
    def zookeepers(self) -> list[str]:
        services = ("zookeeper", "zookeeper2", "zookeeper3")
        return [service for service in services if self.find(service)]

    # What the brokers say

    def metadata(self) -> list[MetadataResponse]:
        """The answers of the brokers that answer."""
        found = []
        for address in BOOTSTRAP:
            try:
                found.append(LoopThread.shared().call(ask(address)))
            except TransportError:
                continue
        return found

    def controller(self) -> str:
        """The broker that most of the others take for the controller; raises FaultError."""
        named = [answer.controller_id for answer in self.metadata() if answer.controller_id >= 0]
        if not named:
            raise FaultError("no broker knows of a controller")
        return f"broker{max(sorted(set(named)), key=named.count)}"

    def partitions(self, topic: str) -> dict[int, PartitionMetadata]:
        """Each partition as the broker with the latest leader epoch describes it."""
        found: dict[int, PartitionMetadata] = {}
        for answer in self.metadata():
            for described in answer.topics:
                for each in described.partitions if described.topic == topic else ():
                    known = found.get(each.partition)
                    if known is None or known.leader_epoch < each.leader_epoch:
                        found[each.partition] = each
        return found

    def leader(self, topic: str, partition: int) -> str | None:
        """The broker that leads, or None."""
        found = self.partitions(topic).get(partition)
        return None if found is None or found.leader_id < 0 else f"broker{found.leader_id}"

    def in_sync(self) -> bool:
        """Whether every broker answers, and every replica of every partition is in sync."""
        answers = self.metadata()
        return len(answers) == len(BROKERS) and all(
            set(partition.in_sync_replicas) == set(partition.replicas)
            for answer in answers
            for topic in answer.topics
            for partition in topic.partitions
        )

    def serves(self) -> bool:
        """Whether every broker knows all of them and a controller, and all replicas are in sync."""
        return self.in_sync() and all(
            len(answer.brokers) == len(BROKERS) and answer.controller_id >= 0
            for answer in self.metadata()
        )


def wait_until(what: str, condition: Callable[[], bool], within: float) -> None:
    """Wait for a condition; raises FaultError with `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() >= deadline:
            raise FaultError(f"not after {within:g} s: {what}")
        time.sleep(_POLL_SECONDS)

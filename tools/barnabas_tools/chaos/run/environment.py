"""The compose cluster of a run: built, started with a profile's settings, removed at the end."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from barnabas_tools.chaos.faults.compose_cluster import (
    BOOTSTRAP,
    BROKERS,
    PROJECT_FILES,
    ComposeCluster,
    docker,
    run_command,
    wait_until,
)
from barnabas_tools.chaos.faults.errors import FaultError
from barnabas_tools.local.ports import is_taken

_START_SECONDS = 180.0
_SAVED_LINES = "2000"


@contextmanager
def compose_cluster(
    project: str, checkout: Path, brokers: Mapping[str, str], folder: Path, build: bool = True
) -> Iterator[ComposeCluster]:
    """A new cluster with these settings of its brokers; their logs are left in `folder`.

    Raises FaultError if it does not start.
    """
    if not (checkout / PROJECT_FILES[0]).exists():
        raise FaultError(f"there is no {PROJECT_FILES[0]} in {checkout.resolve()}")
    settings = folder.resolve() / "settings.yml"
    settings.write_text(_override(brokers))
    cluster = ComposeCluster(project, checkout, [*PROJECT_FILES, str(settings)])
    docker("info", "--format", "{{.ServerVersion}}")
    _remove(cluster)
    if taken := [address for address in BOOTSTRAP if is_taken(int(address.rpartition(":")[2]))]:
        raise FaultError(f"{', '.join(taken)}: the port is taken, and the brokers need it")
    try:
        if build:
            _checked(checkout, "docker/make-base.sh")
            cluster.compose("build")
        cluster.compose("up", "-d")
        wait_until("three brokers serve", cluster.serves, _START_SECONDS)
        yield cluster
    finally:
        with suppress(FaultError, OSError):
            logs = cluster.compose("logs", "--no-color", "--tail", _SAVED_LINES)
            (folder / "brokers.log").write_text(logs)
        _remove(cluster)


def _remove(cluster: ComposeCluster) -> None:
    for service in (*cluster.zookeepers, *cluster.brokers):
        if cluster.state(service) == "paused":
            docker("unpause", cluster.container(service))
    cluster.compose("down", "--volumes", "--remove-orphans", "--timeout", "1")


def _checked(checkout: Path, script: str) -> None:
    done = run_command([str(checkout / script)], checkout)
    if done.code != 0:
        raise FaultError(f"{script}: {done.last_line}")


def _override(settings: Mapping[str, str]) -> str:
    """A compose file that adds settings to the brokers."""
    named = {
        f"BARNABAS_{name.replace('.', '_').upper()}": value for name, value in settings.items()
    }
    lines = ["# The settings of this run's profile.", 'version: "3.8"', "services:"]
    for broker in BROKERS:
        lines += [f"  {broker}:", "    environment:"]
        lines += [f'      {name}: "{value}"' for name, value in sorted(named.items())]
        for topic in ("OFFSETS_TOPIC", "TRANSACTION_STATE_LOG"):
            lines += [f'      BARNABAS_{topic}_NUM_PARTITIONS: "3"']
    return "\n".join(lines) + "\n"

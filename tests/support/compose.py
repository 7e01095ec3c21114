"""A compose cluster for the tests of a module, from this checkout."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, docker
from barnabas_tools.local.ports import is_taken

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "barnabas-test"
CHAOS_PROJECT = f"{PROJECT}-chaos"
BOOTSTRAP = "localhost:9092,localhost:9093,localhost:9094"
PORTS = (9092, 9093, 9094)
PLAIN = ("docker-compose.yml",)
READY_SECONDS = 90.0


def require_docker() -> None:
    """Skip without Docker; fail if a port is taken, but not by an earlier run of these tests."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0
    ):
        pytest.skip("no Docker engine answers")
    remove_leftovers()
    taken = [port for port in PORTS if is_taken(port)]
    if taken:
        pytest.fail(f"the compose file publishes ports {taken}, which are taken")
    subprocess.run([ROOT / "docker" / "make-base.sh"], check=True)


def remove_leftovers() -> None:
    """Remove the tests' own containers: Docker starts those of a killed run again with itself."""
    for project in (PROJECT, CHAOS_PROJECT):
        label = f"label=com.docker.compose.project={project}"
        found = docker("ps", "--all", "--quiet", "--filter", label)
        if containers := found.split():
            docker("rm", "--force", "--volumes", *containers)


def remove(cluster: ComposeCluster) -> None:
    cluster.compose("down", "--volumes", "--remove-orphans", "--timeout", "1")


@contextmanager
def running(files: Sequence[str] = PLAIN, options: Sequence[str] = ()) -> Iterator[ComposeCluster]:
    """The images built, every broker serving; all of it is removed afterwards."""
    require_docker()
    cluster = ComposeCluster(PROJECT, ROOT, files, options)
    remove(cluster)
    try:
        cluster.compose("build")
        cluster.compose("up", "-d")
        wait_until_serving(cluster)
        yield cluster
    finally:
        remove(cluster)


def wait_until_serving(cluster: ComposeCluster) -> None:
    """Docker asks for the first time after ten seconds; the brokers serve sooner."""
    deadline = time.monotonic() + READY_SECONDS
    while not cluster.serves():
        assert time.monotonic() < deadline, f"not all brokers serve\n{logs(cluster)}"
        time.sleep(0.2)


def health(cluster: ComposeCluster, service: str) -> str:
    return str(cluster.inspect(service)["State"]["Health"]["Status"])


def wait_until_healthy(cluster: ComposeCluster) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for service in (*cluster.zookeepers, *cluster.brokers):
        while (found := health(cluster, service)) != "healthy":
            assert time.monotonic() < deadline, f"{service} is {found}\n{logs(cluster)}"
            time.sleep(0.5)


def logs(cluster: ComposeCluster) -> str:
    return cluster.compose("logs", "--no-color", "--tail", "40")[-6000:]


def environment() -> dict[str, str]:
    """This process's environment without what `make` adds to it."""
    return {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}

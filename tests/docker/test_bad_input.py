"""What is wrong with a container's surroundings is one clear line."""

import socket
from collections.abc import Iterator

import pytest
from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, docker, run_command
from barnabas_tools.chaos.faults.errors import FaultError

from tests.support.compose import PLAIN, PROJECT, ROOT, remove, require_docker

pytestmark = pytest.mark.docker

IMAGE = "barnabas-broker"
VOLUME = "barnabas-test-bad-input"
DATA = "/var/lib/barnabas"
LISTENERS = "CLIENT://0.0.0.0:9092,INTERNAL://0.0.0.0:19092"
SETTINGS = {
    "BARNABAS_BROKER_ID": "1",
    "BARNABAS_LISTENERS": LISTENERS,
    "BARNABAS_ADVERTISED_LISTENERS": LISTENERS.replace("0.0.0.0", "broker1"),
    "BARNABAS_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "BARNABAS_ZOOKEEPER_CONNECT": "127.0.0.1:2181",
    "BARNABAS_ZOOKEEPER_CONNECTION_TIMEOUT_MS": "2000",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ComposeCluster]:
    """The images of a compose project, of which no container runs yet."""
    require_docker()
    cluster = ComposeCluster(PROJECT, ROOT, PLAIN)
    remove(cluster)
    cluster.compose("build", "zookeeper", "broker1")
    yield cluster
    remove(cluster)


@pytest.fixture
def volume() -> Iterator[str]:
    docker("volume", "create", VOLUME)
    yield VOLUME
    docker("volume", "rm", "--force", VOLUME)


def run_broker(*options: str) -> tuple[int, str]:
    """Run a broker's container to its end; returns the exit code and the last line."""
    settings = [part for name, value in SETTINGS.items() for part in ("-e", f"{name}={value}")]
    done = run_command(["docker", "run", "--rm", *settings, *options, IMAGE])
    return done.code, done.last_line


def test_a_broker_without_a_volume(cluster: ComposeCluster) -> None:
    code, line = run_broker()
    assert code == 1
    assert line.startswith(f"barnabas: no volume is mounted at {DATA}; its records would be lost")


def test_a_volume_of_another_user(cluster: ComposeCluster, volume: str) -> None:
    mount = f"{volume}:{DATA}"
    as_root = ("--rm", "--user", "root", "--entrypoint", "sh")
    # Docker would give an empty volume the owner that the image names.
    docker("run", *as_root, "--volume", mount, IMAGE, "-c", f"touch {DATA}/x; chown root {DATA}")
    code, line = run_broker("--volume", mount)
    assert code == 1 and "cannot be written to by user 997; its owner is 0" in line


def test_no_zookeeper(cluster: ComposeCluster, volume: str) -> None:
    code, line = run_broker("--volume", f"{volume}:{DATA}")
    assert code == 1
    assert "no ZooKeeper server at 127.0.0.1:2181 answered within 2000 ms" in line


def test_a_volume_that_a_later_release_has_written(cluster: ComposeCluster, volume: str) -> None:
    cluster.compose("up", "-d", "zookeeper")
    mount = f"{volume}:{DATA}"
    write = f"printf 'broker.id=1\\nversion=2\\n' >{DATA}/meta.properties"
    docker("run", "--rm", "--entrypoint", "sh", "--volume", mount, IMAGE, "-c", write)
    network = f"container:{cluster.container('zookeeper')}"
    code, line = run_broker(
        *("--volume", mount, "--network", network),
        *("-e", "BARNABAS_ZOOKEEPER_CONNECTION_TIMEOUT_MS=60000"),
    )
    assert code == 1
    assert "was written by another release: its meta.properties has version 2" in line


def test_a_port_that_is_taken(cluster: ComposeCluster) -> None:
    with socket.create_server(("0.0.0.0", 9093)):
        with pytest.raises(FaultError) as caught:
            cluster.compose("up", "-d", "broker2")
        assert "9093" in str(caught.value) and "address already in use" in str(caught.value)


def test_a_wrong_advertised_address_is_found_by_doctor(cluster: ComposeCluster) -> None:
    cluster.compose("up", "-d", "zookeeper")
    advertised = "CLIENT://nowhere.invalid:9092,CONTAINER://broker1:29092,INTERNAL://broker1:19092"
    setting = f"BARNABAS_ADVERTISED_LISTENERS={advertised}"
    cluster.compose("run", "-d", "--name", f"{PROJECT}-wrong", "-e", setting, "broker1")
    try:
        inside = ["docker", "exec", f"{PROJECT}-wrong", "barnabas"]
        own = run_command([*inside, "-b", "localhost:29092", "doctor", "--wait", "60"])
        assert own.code == 0, own.last_line
        done = run_command([*inside, "-b", "localhost:9092", "doctor"])
        assert done.code == 1
        assert done.last_line == (
            "barnabas: advertised by broker 1 nowhere.invalid:9092: the name nowhere.invalid is"
            " unknown here, or no route leads to it; start the broker, or change"
            " advertised.listeners of broker 1"
        )
    finally:
        docker("rm", "--force", "--volumes", f"{PROJECT}-wrong")

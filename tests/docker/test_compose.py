"""The compose cluster: reachable from the host and inside, and a killed leader loses nothing."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas import Consumer, Producer
from barnabas_tools.local.ports import is_taken

from tests.support.cluster_state import (
    create_topic,
    leaders,
    until_not_led_by,
    wait_until_in_sync,
)
from tests.support.workload import Workload

pytestmark = pytest.mark.docker

ROOT = Path(__file__).resolve().parents[2]
BOOTSTRAP = "localhost:9092,localhost:9093,localhost:9094"
INSIDE = "broker1:29092,broker2:29092,broker3:29092"
PORTS = (9092, 9093, 9094)
PARTITIONS = 6
HEALTHY_SECONDS = 90.0


class Compose:
    """`docker-compose` with this repository's file, under a separate project name."""

    def __init__(self) -> None:
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        tool = ["docker", "compose"] if plugin.returncode == 0 else ["docker-compose"]
        self._command = [*tool, "--project-name", "barnabas-test"]

    def __call__(self, *arguments: str) -> str:
        result = subprocess.run(
            [*self._command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
        return result.stdout

    def container(self, service: str) -> str:
        return self("ps", "-q", service).strip()

    def health(self, service: str) -> str:
        name = self.container(service)
        form = "{{json .State.Health.Status}}"
        command = ["docker", "inspect", "--format", form, name]
        return str(json.loads(subprocess.check_output(command, text=True)))

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + HEALTHY_SECONDS
        for service in ("zookeeper", "broker1", "broker2", "broker3"):
            while (health := self.health(service)) != "healthy":
                assert time.monotonic() < deadline, f"{service} is {health}\n{self('logs')[-4000:]}"
                time.sleep(0.5)


def docker(*arguments: str) -> None:
    subprocess.run(["docker", *arguments], check=True, capture_output=True)


def docker_runs() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def compose() -> Iterator[Compose]:
    if not docker_runs():
        pytest.skip("no Docker engine answers")
    taken = [port for port in PORTS if is_taken(port)]
    if taken:
        pytest.fail(f"the compose file publishes ports {taken}, which are taken")
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    subprocess.run(["make", "image"], cwd=ROOT, check=True, env=environment)
    compose = Compose()
    compose("down", "--volumes", "--timeout", "1")
    try:
        compose("up", "-d")
        compose.wait_until_healthy()
        yield compose
    finally:
        compose("down", "--volumes", "--timeout", "1")


async def test_a_client_on_the_host_produces_and_consumes(compose: Compose) -> None:
    await create_topic(BOOTSTRAP, "from-host", 3)
    values = {b"%d" % number for number in range(300)}
    async with Producer(bootstrap_servers=BOOTSTRAP, acks="all") as producer:
        for value in values:
            await producer.send("from-host", value, key=value)
        await producer.flush()
    found: set[bytes | None] = set()
    async with (
        asyncio.timeout(30),
        Consumer(
            "from-host", bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest"
        ) as consumer,
    ):
        while len(found) < len(values):
            found.update(record.value for record in await consumer.poll(timeout_ms=500))
    assert found == values


def test_a_client_in_a_container_reaches_every_broker(compose: Compose) -> None:
    command = ("exec", "-T", "broker2", "barnabas", "--bootstrap", INSIDE)
    compose(*command, "topic", "create", "inside", "--partitions", "3")
    rows = compose(*command, "--output", "json", "replica", "status", "inside").splitlines()
    assert sorted({json.loads(row)["broker"] for row in rows}) == [1, 2, 3]


async def test_killing_the_leaders_container_loses_nothing_acknowledged(compose: Compose) -> None:
    topic = "kill-container"
    await create_topic(BOOTSTRAP, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, BOOTSTRAP) as workload:
        await workload.acked_in_every_partition(50)
        victim = (await leaders(BOOTSTRAP, topic))[0]
        container = compose.container(f"broker{victim}")
        await asyncio.to_thread(docker, "kill", container)
        await workload.acked_in_every_partition(50)
        await until_not_led_by(BOOTSTRAP, topic, victim)
        await asyncio.to_thread(docker, "start", container)
        await wait_until_in_sync(BOOTSTRAP, topic, within=60)
        await workload.stop()
        assert not workload.failed
        (await workload.verdict()).assert_good()
    await asyncio.to_thread(compose.wait_until_healthy)


def test_stop_and_start_keep_the_topics(compose: Compose) -> None:
    command = ("exec", "-T", "broker1", "barnabas", "--bootstrap", INSIDE)
    compose(*command, "topic", "create", "kept")
    compose("stop")
    compose("start")
    compose.wait_until_healthy()
    assert "kept" in compose(*command, "topic", "list")

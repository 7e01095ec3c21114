"""The exactly-once sink when drivers, tasks and brokers are killed with -9 at the worst moments."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.sink_support import DriverProcess, open_transactions, settled_values, values
from tests.support.cluster_state import create_topic, wait_until_in_sync

pytestmark = pytest.mark.spark
LINES = 50
COUNT = 400


class Application:
    """One query, or one job, that is started as often as it takes."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._running: list[DriverProcess] = []

    def stream(self, topic: str, stop: str = "", files: int = 2) -> DriverProcess:
        source = self._folder / "source"
        source.mkdir(exist_ok=True)
        for number in range(files):
            path = source / f"{number}.txt"
            if not path.exists():
                lines = range(number * LINES, (number + 1) * LINES)
                path.write_text("".join(f"{line}\n" for line in lines))
        checkpoint = str(self._folder / "checkpoint")
        arguments = ("stream", self._cluster.bootstrap, str(source), topic, checkpoint)
        return self._start(stop, *arguments, "exactly-once")

    def batch(self, topic: str, tasks: int, stop: str = "") -> DriverProcess:
        arguments = (
            "batch",
            self._cluster.bootstrap,
            str(COUNT),
            str(tasks),
            topic,
            f"job-{topic}",
        )
        return self._start(stop, *arguments)

    def _start(self, stop: str, *arguments: str) -> DriverProcess:
        driver = DriverProcess(self._folder / "stops", *arguments, stop=stop)
        self._running.append(driver)
        return driver

    def close(self) -> None:
        for driver in self._running:
            if driver.process.poll() is None:
                driver.kill()


@pytest.fixture
def application(cluster: LocalCluster, tmp_path: Path) -> Iterator[Application]:
    found = Application(cluster, tmp_path)
    yield found
    found.close()


def expected(count: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(count))


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("before-decision", marks=pytest.mark.slow),
        pytest.param("after-decision", marks=pytest.mark.slow),
        "after-commit-1",
    ],
)
def test_a_query_whose_driver_is_killed_while_it_commits(
    cluster: LocalCluster, run: asyncio.Runner, application: Application, point: str
) -> None:
    topic = f"driver-{point}"
    run.run(create_topic(cluster.bootstrap, topic, 3))
    first = application.stream(topic, stop=point)
    first.wait_until_stopped_at(point)
    first.kill()
    if point != "after-commit-1":
        assert run.run(values(cluster.bootstrap, topic)) == []
    assert len(run.run(open_transactions(cluster.bootstrap))) == 2 - (point == "after-commit-1")
    application.stream(topic).finish()
    assert run.run(settled_values(cluster.bootstrap, topic)) == expected(2 * LINES)
    assert run.run(open_transactions(cluster.bootstrap)) == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-decision", "after-commit-1"])
def test_a_job_that_is_run_again_with_fewer_tasks(
    cluster: LocalCluster, run: asyncio.Runner, application: Application, point: str
) -> None:
    topic = f"job-{point}"
    run.run(create_topic(cluster.bootstrap, topic, 3))
    first = application.batch(topic, tasks=4, stop=point)
    first.wait_until_stopped_at(point)
    first.kill()
    application.batch(topic, tasks=2).finish()
    assert run.run(settled_values(cluster.bootstrap, topic)) == expected(COUNT)
    assert run.run(open_transactions(cluster.bootstrap)) == []


def test_a_task_that_dies_when_it_has_prepared(
    cluster: LocalCluster, run: asyncio.Runner, application: Application
) -> None:
    run.run(create_topic(cluster.bootstrap, "task", 3))
    driver = application.batch("task", tasks=2, stop="prepared")
    os.kill(driver.wait_until_stopped_at("prepared"), signal.SIGKILL)
    driver.finish()
    assert run.run(settled_values(cluster.bootstrap, "task")) == expected(COUNT)
    assert run.run(open_transactions(cluster.bootstrap)) == []
    written = run.run(values(cluster.bootstrap, "task", "read_uncommitted"))
    assert len(written) == COUNT + COUNT // 2  # the dead attempt's records are there, and aborted


@pytest.mark.slow
def test_a_broker_that_dies_while_the_driver_commits(
    cluster: LocalCluster, run: asyncio.Runner, application: Application
) -> None:
    run.run(create_topic(cluster.bootstrap, "broker", 3))
    driver = application.batch("broker", tasks=4, stop="after-commit-1")
    driver.wait_until_stopped_at("after-commit-1")
    cluster.kill(2)
    try:
        driver.resume("after-commit-1")
        driver.finish()
        assert run.run(settled_values(cluster.bootstrap, "broker")) == expected(COUNT)
    finally:
        cluster.start_broker(2)
    run.run(wait_until_in_sync(cluster.bootstrap, "broker"))
    assert run.run(open_transactions(cluster.bootstrap)) == []

"""A real cluster of processes for each test module: ZooKeeper and three brokers."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.support.real_cluster import real_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three brokers with short timeouts; a test must restart the brokers that it kills."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    config = {
        "zookeeper.session.timeout.ms": "2000",
        "replica.lag.time.max.ms": "3000",
        "log.initial.task.delay.ms": "100",
    }
    with real_cluster(directory, config) as running:
        yield running


@pytest.fixture(autouse=True)
def whole(request: pytest.FixtureRequest) -> None:
    """Before each test every broker runs, is registered and is known to all others.

    The test before may have failed, and its failure must not cause others.
    """
    if "cluster" not in request.fixturenames:
        return
    cluster: LocalCluster = request.getfixturevalue("cluster")
    for broker in cluster.running_brokers():
        cluster.signal(broker, signal.SIGCONT)
    cluster.start()

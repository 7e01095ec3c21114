"""One Spark for all tests here, a cluster for each module, and a topic with records in it."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from barnabas_tools.local.cluster import LocalCluster

OLDEST_JAVA = 17


def java_version() -> int:
    """Return the major version of the Java that Spark would use, 0 for none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


@pytest.fixture(scope="session", autouse=True)
def java() -> None:
    """Skip the tests without a Java that Spark can use."""
    if java_version() < OLDEST_JAVA:
        pytest.skip(f"Spark needs Java {OLDEST_JAVA} or newer; found {java_version() or 'none'}")


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("barnabas-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.task.maxFailures", "1")
        # Several streams that have nothing to read would ask for new offsets all the time.
        .config("spark.sql.streaming.pollingDelay", "100ms")
        .config("spark.log.level", "ERROR")
        # Java's second compiler does not pay off in a process that runs for a minute.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three brokers; a test must restart the brokers that it kills."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    config = {"zookeeper.session.timeout.ms": "2000", "replica.lag.time.max.ms": "3000"}
    with LocalCluster(directory, brokers=3, config=config) as running:
        yield running


@pytest.fixture
def run() -> Iterator[asyncio.Runner]:
    """A runner for plain test functions: the data source runs its own event loops."""
    with asyncio.Runner() as runner:
        yield runner

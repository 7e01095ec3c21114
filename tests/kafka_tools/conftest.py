"""Fixtures of the tests against Apache Kafka's own classes."""

from pathlib import Path

import pytest

from tests.kafka_tools import harness


@pytest.fixture(scope="session", autouse=True)
def kafka_tools() -> None:
    """Skip the tests unless Kafka's jars are there."""
    try:
        harness.kafka_jars()
    except harness.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka_log(kafka_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a partition's log that Kafka wrote; tests must not change it."""
    directory = tmp_path_factory.mktemp("kafka") / "written-0"
    directory.mkdir()
    harness.write_segments(directory)
    return directory

"""What the driver asks brokers that do not answer: repeated questions, progress as a group."""

from collections.abc import Mapping
from typing import Any

import pytest
from barnabas_common.errors import BarnabasError, NotCoordinatorError, UnknownTopicOrPartitionError
from barnabas_common.topic_partition import TopicPartition
from pyspark_barnabas.options import parse_options
from pyspark_barnabas.reading.offset_reader import OffsetReader
from pyspark_barnabas.reading.published_progress import PublishedProgress

REQUIRED = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "flights"}
FLIGHTS = TopicPartition("flights", 0)


def reader_of(**options: str) -> OffsetReader:
    return OffsetReader(parse_options(REQUIRED | options))


async def asked(reader: OffsetReader, failures: int, error: BarnabasError) -> int:
    """How often a question is asked that fails so often."""
    count = 0

    async def ask() -> int:
        nonlocal count
        count += 1
        if count <= failures:
            raise error
        return count

    try:
        return await reader._repeated(ask)
    except BarnabasError:
        return -count


@pytest.mark.parametrize(("failures", "count"), [(2, 3), (3, -3)])
async def test_a_question_is_repeated_as_often_as_the_option_says(failures: int, count: int):
    options = {"fetchOffset.numRetries": "2", "kafka.default.api.timeout.ms": "0"}
    assert await asked(reader_of(**options), failures, NotCoordinatorError("moved")) == count


async def test_a_question_is_repeated_while_kafkas_client_would_repeat_it():
    reader = reader_of(**{"fetchOffset.numRetries": "0"})
    assert await asked(reader, 2, NotCoordinatorError("moved")) == 3


async def test_what_does_not_exist_is_asked_for_once():
    assert await asked(reader_of(), 9, UnknownTopicOrPartitionError("gone")) == -1


class Coordinator:
    """An Admin that commits, or raises what it is given."""

    def __init__(self) -> None:
        self.error: BarnabasError | None = None
        self.committed: list[Mapping[Any, int]] = []

    async def alter_group_offsets(self, group_id: str, offsets: Mapping[Any, int]) -> None:
        if self.error is not None:
            raise self.error
        self.committed.append(offsets)


async def test_a_commit_that_fails_is_a_warning_and_the_next_one_makes_up_for_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    progress, coordinator = PublishedProgress(parse_options(REQUIRED)), Coordinator()
    monkeypatch.setattr(progress, "_admin", coordinator)
    coordinator.error = NotCoordinatorError("moved")
    await progress.publish("query", {FLIGHTS: 7})
    assert "group query: progress is not published" in caplog.text
    coordinator.error = None
    for _ in range(2):
        await progress.publish("query", {FLIGHTS: 7})
    assert coordinator.committed == [{FLIGHTS: 7}], "once, as it has not changed"

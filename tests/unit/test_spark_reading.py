"""One Spark task reads exactly its planned offsets, or fails and says why."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from barnabas_common.errors import UnknownTopicOrPartitionError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.offsets import ListedOffset, ListOffsetsRequest, ListOffsetsResponse
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from pyspark_barnabas.options import ReadOptions
from pyspark_barnabas.reading.columns import ARROW_HEADERS, ARROW_SCHEMA, within_spark
from pyspark_barnabas.reading.errors import DataLossError
from pyspark_barnabas.reading.range_reader import RangeReader
from pyspark_barnabas.reading.ranges import OffsetRange

from tests.support.scripted_brokers import ScriptedBrokers, ScriptedLog


def append(log: ScriptedLog, first: int, count: int) -> None:
    """Append one batch of `count` records with the values first, first + 1, ..."""
    builder = BatchBuilder()
    for number in range(first, first + count):
        builder.append(1000 + number, None, b"%d" % number)
    log.append(builder.build())


async def read(
    brokers: ScriptedBrokers,
    start: int,
    end: int,
    patience_ms: int = 10_000,
    fail_on_data_loss: bool = True,
    topic_id: str = "",
    include_headers: bool = False,
) -> list[pa.Table]:
    options = ReadOptions(
        brokers.bootstrap,
        {brokers.topic: None},
        poll_timeout_ms=patience_ms,
        fail_on_data_loss=fail_on_data_loss,
        include_headers=include_headers,
    )
    planned = OffsetRange(brokers.topic, 0, start, end, topic_id)
    reader = RangeReader(options, planned, brokers.runtime)
    await reader.open()
    tables = []
    try:
        while (table := await reader.next_table()) is not None:
            tables.append(table)
    finally:
        await reader.close()
    return tables


def offsets(tables: list[pa.Table]) -> list[int]:
    return [offset for table in tables for offset in table["offset"].to_pylist()]


@pytest.mark.parametrize("size", [10, 50])
async def test_exactly_the_planned_offsets_though_batches_lie_across_both_ends(size: int):
    """Larger batches are decoded by numpy."""
    async with ScriptedBrokers() as brokers:
        for first in range(0, 100, size):
            append(brokers.log(), first, size)
        tables = await read(brokers, 15, 73)
    assert offsets(tables) == list(range(15, 73))
    values = [value for table in tables for value in table["value"].to_pylist()]
    assert values == [b"%d" % number for number in range(15, 73)]
    assert all(table.schema == ARROW_SCHEMA for table in tables)


@pytest.mark.parametrize(
    ("end", "given", "asked_for"),
    [
        (100, {}, 262_144),
        (10_000, {}, 1_280_000),
        (1_000_000, {}, 4_194_304),
        (100, {"max_partition_fetch_bytes": 7_000}, 7_000),
    ],
)
async def test_a_short_range_does_not_fetch_megabytes_that_it_does_not_need(
    end: int, given: dict[str, int], asked_for: int
):
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 100)
        options = ReadOptions(brokers.bootstrap, {brokers.topic: None}, consumer=given)
        reader = RangeReader(options, OffsetRange(brokers.topic, 0, 0, end), brokers.runtime)
        await reader.open()
        await reader.next_table()
        await reader.close()
    assert brokers.fetched[0].partitions[0].max_bytes == asked_for


async def test_a_planned_end_above_the_high_watermark_is_waited_for():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        reading = asyncio.create_task(read(brokers, 0, 20))
        while not any(request.partitions[0].fetch_offset == 10 for request in brokers.fetched):
            await asyncio.sleep(0.01)
        append(brokers.log(), 10, 15)
        brokers.changed()
        assert offsets(await reading) == list(range(20))


@pytest.mark.parametrize("first", [0, 15])
async def test_a_planned_end_that_never_comes_is_data_loss_and_says_where_it_stands(first: int):
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        words = rf"flights-0 \[{first}, 20\).*offset {first or 10} .*; set failOnDataLoss=false"
        with pytest.raises(DataLossError, match=words):
            await read(brokers, first, 20, patience_ms=600)
        rest = await read(brokers, first, 20, patience_ms=600, fail_on_data_loss=False)
        assert offsets(rest) == list(range(first, 10))


@pytest.mark.parametrize("fail", [True, False])
async def test_a_planned_end_that_the_leader_may_still_reach_fails_the_task(fail: bool):
    async def unsure(_: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        brokers.offset_faults.append(unsure)
        (asked,) = request.partitions
        refused = ListedOffset(asked.topic, asked.partition, ErrorCode.OFFSET_NOT_AVAILABLE)
        return ListOffsetsResponse([refused])

    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        brokers.offset_faults.append(unsure)
        words = r"flights-0 \[0, 20\).*offset 10.*watermark, 10,"
        with pytest.raises(DataLossError, match=words) as failure:
            await read(brokers, 0, 20, patience_ms=600, fail_on_data_loss=fail)
    assert "failOnDataLoss" not in str(failure.value), "it changes nothing here"


async def test_a_start_above_the_log_of_a_new_leader_waits_then_fails():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        with pytest.raises(DataLossError, match="OFFSET_OUT_OF_RANGE"):
            await read(brokers, 15, 20, patience_ms=600)


async def test_a_start_above_the_log_of_a_new_leader_is_waited_for():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        reading = asyncio.create_task(read(brokers, 15, 20))
        while not brokers.fetched:
            await asyncio.sleep(0.01)
        append(brokers.log(), 10, 10)
        brokers.changed()
        assert offsets(await reading) == list(range(15, 20))


async def test_no_leader_is_data_loss_in_the_end():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        brokers.log().leader = -1
        with pytest.raises(DataLossError, match="no leader has answered"):
            await read(brokers, 0, 10, patience_ms=600)


async def test_a_leader_that_dies_before_the_reading_costs_no_row():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        brokers.kill(brokers.log().leader)
        reading = asyncio.create_task(read(brokers, 0, 10))
        await asyncio.sleep(0.2)
        brokers.elect(0, 2 if brokers.log().leader != 2 else 3)
        assert offsets(await reading) == list(range(10))


@pytest.mark.parametrize("fail", [True, False])
async def test_records_that_retention_deleted_after_planning(fail: bool):
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        append(brokers.log(), 10, 10)
        brokers.log().start = 10
        if fail:
            words = "before offset 10 were deleted; set failOnDataLoss=false"
            with pytest.raises(DataLossError, match=words):
                await read(brokers, 5, 20)
        else:
            assert offsets(await read(brokers, 5, 20, fail_on_data_loss=False)) == [*range(10, 20)]


async def test_a_whole_range_that_retention_deleted_ends_when_loss_is_allowed():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 30)
        brokers.log().start = 25
        assert await read(brokers, 5, 20, fail_on_data_loss=False) == []


async def test_offsets_without_records_are_passed_over():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        brokers.log().end = 15  # as after compaction: the next batch begins later
        append(brokers.log(), 15, 5)
        assert offsets(await read(brokers, 0, 20)) == [*range(10), *range(15, 20)]


async def test_records_already_read_that_an_unclean_election_cut_off_are_data_loss():
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        options = ReadOptions(brokers.bootstrap, {brokers.topic: None}, poll_timeout_ms=10_000)
        reader = RangeReader(options, OffsetRange(brokers.topic, 0, 0, 20), brokers.runtime)
        await reader.open()
        try:
            assert (await reader.next_table()).num_rows == 10
            brokers.elect(0, 1 + brokers.log().leader % 3)
            brokers.log().epoch_ends[1] = 4
            brokers.changed()
            with pytest.raises(DataLossError, match="from 4 up to 10"):
                await reader.next_table()
        finally:
            await reader.close()


async def test_a_topic_created_again_since_the_planning_is_not_read():
    async with ScriptedBrokers() as brokers:
        planned_for = brokers.topic_id
        brokers.create_again(1)
        append(brokers.log(), 0, 10)
        with pytest.raises(DataLossError, match="PARTITIONS_DELETED.*deleted and created again"):
            await read(brokers, 0, 10, topic_id=planned_for)
        assert await read(brokers, 0, 10, topic_id=planned_for, fail_on_data_loss=False) == []


@pytest.mark.parametrize("fail", [True, False])
async def test_a_topic_created_again_during_the_reading_fails_the_task(fail: bool):
    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        options = ReadOptions(brokers.bootstrap, {brokers.topic: None}, fail_on_data_loss=fail)
        planned = OffsetRange(brokers.topic, 0, 0, 10, brokers.topic_id)
        reader = RangeReader(options, planned, brokers.runtime)
        await reader.open()
        try:
            assert (await reader.next_table()).num_rows == 10
            brokers.create_again(1)
            with pytest.raises(DataLossError, match="deleted and created again") as failure:
                await reader.next_table()
            assert "failOnDataLoss" not in str(failure.value), "it changes nothing here"
        finally:
            await reader.close()


@pytest.mark.usefixtures("short_grace")
async def test_a_deleted_topic_is_data_loss():
    async with ScriptedBrokers() as brokers:
        missing = OffsetRange("gone", 0, 0, 10, "id")
        reader = RangeReader(ReadOptions(brokers.bootstrap), missing, brokers.runtime)
        with pytest.raises(DataLossError, match="topic 'gone' was deleted"):
            await reader.open()


@pytest.mark.parametrize("fail", [True, False])
async def test_a_topic_deleted_while_the_task_looks_for_its_place(fail: bool):
    """Retention has deleted its start; when it asks where the log begins, the topic is gone."""

    async with ScriptedBrokers() as brokers:
        append(brokers.log(), 0, 10)
        brokers.log().start = 5
        options = ReadOptions(brokers.bootstrap, {"flights": None}, fail_on_data_loss=fail)
        reader = RangeReader(options, OffsetRange("flights", 0, 0, 10), brokers.runtime)
        await reader.open()

        async def vanished(_: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
            raise UnknownTopicOrPartitionError("topic 'flights' does not exist")

        reader._consumer.beginning_offsets = vanished
        try:
            if fail:
                with pytest.raises(DataLossError, match="PARTITIONS_DELETED"):
                    await reader.next_table()
            else:
                assert await reader.next_table() is None
        finally:
            await reader.close()


async def test_headers_when_asked_for():
    builder = BatchBuilder()
    builder.append(1000, None, b"x", [("trace", b"1")])
    builder.append(1000, None, b"y")
    async with ScriptedBrokers() as brokers:
        brokers.log().append(builder.build())
        (table,) = await read(brokers, 0, 2, include_headers=True)
    assert table.schema == ARROW_SCHEMA.append(ARROW_HEADERS)
    assert table["headers"].to_pylist() == [[{"key": "trace", "value": b"1"}], None]


async def test_a_timestamp_that_spark_cannot_represent_does_not_make_its_range_unreadable(
    caplog: pytest.LogCaptureFixture,
):
    builder = BatchBuilder()
    stamps = [1000, 2**63 - 1, 9_223_372_036_854_776]
    for stamp in stamps:
        builder.append(stamp, None, b"x")
    async with ScriptedBrokers() as brokers:
        brokers.log().append(builder.build())
        (table,) = await read(brokers, 0, len(stamps))
    times = [time.replace(tzinfo=UTC) for time in table["timestamp"].to_pylist()]
    last = datetime(9999, 12, 31, tzinfo=UTC)
    assert times == [datetime.fromtimestamp(1, UTC), last, last]
    assert "flights-0: 2 timestamps" in caplog.text and "the first at offset 1" in caplog.text


def test_timestamps_long_ago_are_cut_off_too():
    times = pa.array([-(2**63), -62_135_510_400_001, -62_135_510_400_000, -1, 0])
    assert within_spark(times).to_pylist() == [-62_135_510_400_000] * 3 + [-1, 0]

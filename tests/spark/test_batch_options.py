"""The options of a batch: timestamps, patterns, sizes of tasks, transactions, pushed filters."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from barnabas import Admin, Producer, TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    Not,
)
from pyspark_barnabas.options import OptionError, parse_options
from pyspark_barnabas.reading import BatchReader
from pyspark_barnabas.reading.errors import DataLossError

from tests.spark.support import (
    FIRST_MS,
    Stored,
    batch_reader,
    collect,
    load,
    places,
    produce,
    read_all,
    until_stable,
)
from tests.support.cluster_state import create_topic, leaders, wait_until_in_sync

pytestmark = pytest.mark.spark

COUNT = 90


@pytest.fixture(scope="module")
def stored(cluster: LocalCluster) -> list[Stored]:
    """The records of topic `times`: number n, in partition n % 3, is of FIRST_MS + n."""

    async def fill() -> list[Stored]:
        await create_topic(cluster.bootstrap, "times", 3)
        return await produce(cluster.bootstrap, "times", COUNT)

    return asyncio.run(fill())


def offsets_read(cluster: LocalCluster, **options: str) -> list[tuple[int, int]]:
    reader = batch_reader(cluster.bootstrap, "times", **options)
    return [(partition, offset) for partition, offset, _ in read_all(reader, reader.partitions())]


def between(stored: list[Stored], first: int, end: int) -> list[tuple[int, int]]:
    return places([r for r in stored if first <= r.timestamp_ms - FIRST_MS < end])


def test_timestamps_for_all_partitions(cluster: LocalCluster, stored: list[Stored]):
    found = offsets_read(
        cluster, startingTimestamp=str(FIRST_MS + 30), endingTimestamp=str(FIRST_MS + 60)
    )
    assert found == between(stored, 30, 60)


def test_timestamps_by_partition(cluster: LocalCluster, stored: list[Stored]):
    found = offsets_read(
        cluster,
        startingOffsetsByTimestamp=json.dumps({"times": {str(p): FIRST_MS + 30 for p in range(3)}}),
        endingOffsetsByTimestamp=json.dumps({"times": {str(p): FIRST_MS + 999 for p in range(3)}}),
    )
    assert found == between(stored, 30, COUNT)


def test_a_timestamp_after_the_last_record(cluster: LocalCluster, stored: list[Stored]):
    late = {"startingTimestamp": str(FIRST_MS + 10_000)}
    with pytest.raises(OptionError, match="startingTimestamp: no offset matched"):
        offsets_read(cluster, **late)
    assert offsets_read(cluster, **late, startingOffsetsByTimestampStrategy="latest") == []


def test_no_task_has_more_records_than_allowed(cluster: LocalCluster, stored: list[Stored]):
    reader = batch_reader(cluster.bootstrap, "times", maxRecordsPerPartition="8")
    planned = reader.partitions()
    assert [p.size for p in planned if p.partition == 0] == [7, 8, 7, 8]
    assert [(p, o) for p, o, _ in read_all(reader, planned)] == places(stored)


def test_a_pattern_matches_whole_names(cluster: LocalCluster, stored: list[Stored]):
    options = {"bootstrap.servers": cluster.bootstrap}

    def count(pattern: str) -> int:
        reader = BatchReader(parse_options(options | {"subscribePattern": pattern}))
        return sum(planned.size for planned in reader.partitions())

    assert count("t.*s") == COUNT
    assert count("time") == 0
    assert count(".*") == COUNT, "internal topics are left out"


def test_offsets_out_of_range_fail_or_are_cut(cluster: LocalCluster, stored: list[Stored]):
    beyond = {"endingOffsets": json.dumps({"times": {"0": 10, "1": 31, "2": 0}})}
    with pytest.raises(DataLossError, match=r"KAFKA_DATA_LOSS.START_OFFSET_RESET\] times-1"):
        offsets_read(cluster, **beyond)
    found = offsets_read(cluster, **beyond, failOnDataLoss="false")
    assert len([p for p, _ in found if p == 0]) == 10
    assert len([p for p, _ in found if p == 1]) == 30


def test_a_topic_created_again_between_planning_and_reading(
    cluster: LocalCluster, run: asyncio.Runner
):
    async def create_again() -> None:
        async with Admin(cluster.bootstrap) as admin:
            await admin.delete_topics(["short-lived"])
        await create_topic(cluster.bootstrap, "short-lived", 1)
        await produce(cluster.bootstrap, "short-lived", 50, partitions=1)

    run.run(create_topic(cluster.bootstrap, "short-lived", 1))
    run.run(produce(cluster.bootstrap, "short-lived", 20, partitions=1))
    reader = batch_reader(cluster.bootstrap, "short-lived")
    planned = reader.partitions()
    run.run(create_again())
    with pytest.raises(DataLossError, match="PARTITIONS_DELETED.*deleted and created again"):
        read_all(reader, planned)
    lenient = batch_reader(cluster.bootstrap, "short-lived", failOnDataLoss="false")
    assert read_all(lenient, planned) == []
    assert len(read_all(reader, reader.partitions())) == 50


def test_read_committed_ends_at_the_last_stable_offset(cluster: LocalCluster, run: asyncio.Runner):
    run.run(create_topic(cluster.bootstrap, "transfers", 1))
    partition = TopicPartition("transfers", 0)

    def values(level: str) -> list[bytes | None]:
        options = {"kafka.isolation.level": level}
        reader = batch_reader(cluster.bootstrap, "transfers", **options)
        return [value for _, _, value in read_all(reader, reader.partitions())]

    async def transact() -> None:
        async with (
            Producer(cluster.bootstrap, transactional_id="one") as one,
            Producer(cluster.bootstrap, transactional_id="two") as two,
        ):
            await one.init_transactions()
            await two.init_transactions()
            await one.begin_transaction()
            await one.send_and_wait("transfers", b"aborted")
            await one.abort_transaction()
            await one.begin_transaction()
            await one.send_and_wait("transfers", b"committed")
            await one.commit_transaction()
            await two.begin_transaction()
            opened = await two.send_and_wait("transfers", b"open")
            await until_stable(cluster.bootstrap, partition, opened.offset)
            while_open = await asyncio.to_thread(values, "read_committed")
            assert while_open == [b"committed"]
            everything = await asyncio.to_thread(values, "read_uncommitted")
            assert everything == [b"aborted", b"committed", b"open"]
            await two.commit_transaction()
            await until_stable(cluster.bootstrap, partition, opened.offset + 2)

    run.run(transact())
    assert values("read_committed") == [b"committed", b"open"]


OFFSET, PARTITION, TOPIC = ("offset",), ("partition",), ("topic",)


SHORTENING: list[tuple[list[Any], set[tuple[int, int]], int]] = [
    (
        [GreaterThanOrEqual(OFFSET, 10), LessThan(OFFSET, 12)],
        {(p, o) for p in range(3) for o in (10, 11)},
        0,
    ),
    (
        [EqualTo(PARTITION, 1), IsNotNull(PARTITION), GreaterThan(OFFSET, 27)],
        {(1, 28), (1, 29)},
        0,
    ),
    ([In(PARTITION, (0, 9)), EqualTo(OFFSET, 3)], {(0, 3)}, 0),
    ([Not(EqualTo(PARTITION, 1)), EqualTo(OFFSET, 3)], {(0, 3), (2, 3)}, 0),
    ([EqualTo(TOPIC, "other")], set(), 0),
    ([In(OFFSET, (4, 6)), EqualTo(PARTITION, 0)], {(0, 4), (0, 5), (0, 6)}, 1),
    ([EqualTo(("value",), b"x"), EqualTo(OFFSET, 1), EqualTo(PARTITION, 2)], {(2, 1)}, 1),
]


@pytest.mark.parametrize(("filters", "places_left", "left_to_spark"), SHORTENING)
def test_filters_shorten_what_is_read(
    cluster: LocalCluster,
    stored: list[Stored],
    filters: list[Any],
    places_left: set[tuple[int, int]],
    left_to_spark: int,
):
    reader = batch_reader(cluster.bootstrap, "times")
    assert len(list(reader.pushFilters(filters))) == left_to_spark
    rows = read_all(reader, [p for p in reader.partitions() if p.topic])
    assert {(partition, offset) for partition, offset, _ in rows} == places_left


def test_spark_pushes_filters_once_it_is_told_to(
    spark: Any, cluster: LocalCluster, stored: list[Stored]
):
    setting = "spark.sql.python.filterPushdown.enabled"
    first = stored[0]
    late = f"timestamp >= timestamp_millis({FIRST_MS + 75}) and offset < 28"
    spark.conf.set(setting, "true")
    try:
        frame = load(spark, cluster.bootstrap, "times")
        assert collect(frame.where("partition = 0 and offset = 0")) == [first]
        assert frame.where("partition = 0 and offset = 0").rdd.getNumPartitions() == 1
        pushed = collect(frame.where(late))
    finally:
        spark.conf.set(setting, "false")
    assert pushed == collect(load(spark, cluster.bootstrap, "times").where(late))
    assert [r.timestamp_ms - FIRST_MS for r in pushed if r.partition == 0] == [75, 78, 81]


def test_headers_reach_spark(spark: Any, cluster: LocalCluster, run: asyncio.Runner):
    async def fill() -> None:
        await create_topic(cluster.bootstrap, "traced", 1)
        async with Producer(cluster.bootstrap) as producer:
            await producer.send_and_wait("traced", b"x", headers=[("a", b"1"), ("b", None)])
            await producer.send_and_wait("traced", b"y")

    run.run(fill())
    rows = load(spark, cluster.bootstrap, "traced", includeHeaders="true").collect()
    pairs = [(header["key"], header["value"]) for header in rows[0]["headers"]]
    assert pairs == [("a", b"1"), ("b", None)]
    assert rows[1]["headers"] is None


def test_a_leader_killed_in_the_middle_of_a_range_costs_no_row(
    cluster: LocalCluster, run: asyncio.Runner
):
    run.run(create_topic(cluster.bootstrap, "long", 1))
    stored = run.run(produce(cluster.bootstrap, "long", 20_000, partitions=1))
    small = {"kafka.max.partition.fetch.bytes": "20000", "kafka.fetch.max.bytes": "20000"}
    reader = batch_reader(cluster.bootstrap, "long", **small)
    (planned,) = reader.partitions()
    victim = run.run(leaders(cluster.bootstrap, "long"))[0]
    rows: list[int] = []
    killed = False
    try:
        for batch in reader.read(replace(planned)):
            rows += batch["offset"].to_pylist()
            if not killed:
                cluster.kill(victim)
                killed = True
    finally:
        cluster.start_broker(victim)
    assert rows == [record.offset for record in stored]
    run.run(wait_until_in_sync(cluster.bootstrap, "long"))

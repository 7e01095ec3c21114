"""spark.read.format("barnabas"): what was produced is what Spark shows, row by row."""

import asyncio
import json
import time
from typing import Any

import pytest
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.ports import free_ports

from tests.spark.support import PARTITIONS, Stored, collect, load, produce
from tests.support.cluster_state import create_topic

pytestmark = pytest.mark.spark

COUNT = 3_000
SCHEMA = [
    ("key", "binary", True),
    ("value", "binary", True),
    ("topic", "string", True),
    ("partition", "int", True),
    ("offset", "bigint", True),
    ("timestamp", "timestamp", True),
    ("timestampType", "int", True),
]


@pytest.fixture(scope="module")
def produced(cluster: LocalCluster) -> list[Stored]:
    """The records of topic `numbers`."""

    async def fill() -> list[Stored]:
        await create_topic(cluster.bootstrap, "numbers", PARTITIONS)
        return await produce(cluster.bootstrap, "numbers", COUNT)

    return asyncio.run(fill())


def test_every_record_with_all_its_fields(
    spark: Any, cluster: LocalCluster, produced: list[Stored]
):
    assert collect(load(spark, cluster.bootstrap, "numbers")) == produced
    assert len(produced) == COUNT


def test_the_schema_is_that_of_sparks_kafka_source(
    spark: Any, cluster: LocalCluster, produced: list[Stored]
):
    fields = load(spark, cluster.bootstrap, "numbers").schema.fields
    assert [(f.name, f.dataType.simpleString(), f.nullable) for f in fields] == SCHEMA


def test_one_task_for_each_partition_and_more_when_asked(
    spark: Any, cluster: LocalCluster, produced: list[Stored]
):
    assert load(spark, cluster.bootstrap, "numbers").rdd.getNumPartitions() == PARTITIONS
    split = load(spark, cluster.bootstrap, "numbers", minPartitions="9")
    assert split.rdd.getNumPartitions() == 9
    assert collect(split) == produced


def test_records_stamped_by_the_broker_say_so(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner
):
    run.run(
        create_topic(
            cluster.bootstrap, "stamped", PARTITIONS, message_timestamp_type="LogAppendTime"
        )
    )
    stored = run.run(produce(cluster.bootstrap, "stamped", 10))
    rows = collect(load(spark, cluster.bootstrap, "stamped"))
    assert rows == [record._replace(timestamp_type=1) for record in stored]
    assert abs(rows[0].timestamp_ms - time.time() * 1000) < 60_000


def test_an_empty_topic_has_no_rows(spark: Any, cluster: LocalCluster, run: asyncio.Runner):
    run.run(create_topic(cluster.bootstrap, "empty", PARTITIONS))
    frame = load(spark, cluster.bootstrap, "empty")
    assert frame.collect() == []
    assert frame.count() == 0


def test_several_topics(
    spark: Any, cluster: LocalCluster, produced: list[Stored], run: asyncio.Runner
):
    run.run(create_topic(cluster.bootstrap, "letters", 1))
    run.run(produce(cluster.bootstrap, "letters", 5, partitions=1))
    counts = load(spark, cluster.bootstrap, "numbers,letters").groupBy("topic").count().collect()
    assert {row["topic"]: row["count"] for row in counts} == {"numbers": COUNT, "letters": 5}


def test_given_offsets(spark: Any, cluster: LocalCluster, produced: list[Stored]):
    frame = load(
        spark,
        cluster.bootstrap,
        "numbers",
        startingOffsets=json.dumps({"numbers": {"0": 10, "1": -2, "2": 700}}),
        endingOffsets=json.dumps({"numbers": {"0": 20, "1": 5, "2": -1}}),
    )
    wanted = {0: range(10, 20), 1: range(5), 2: range(700, COUNT)}
    assert collect(frame) == [r for r in produced if r.offset in wanted[r.partition]]


def test_assigned_partitions(spark: Any, cluster: LocalCluster, produced: list[Stored]):
    frame = (
        spark.read.format("barnabas")
        .option("bootstrap.servers", cluster.bootstrap)
        .option("assign", '{"numbers": [0, 2]}')
        .load()
    )
    assert collect(frame) == [r for r in produced if r.partition in (0, 2)]


def test_a_part_of_the_rows_may_be_all_that_is_wanted(
    spark: Any, cluster: LocalCluster, produced: list[Stored]
):
    assert len(load(spark, cluster.bootstrap, "numbers").limit(7).collect()) == 7
    assert load(spark, cluster.bootstrap, "numbers").select("offset").distinct().count() == 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "no-such-topic"}, "no-such-topic"),
        ({"group.id": "mine"}, "did you mean 'kafka.group.id'"),
        ({"startingOffsets": "latest"}, "startingOffsets of a batch cannot be 'latest'"),
        ({"startingOffsets": '{"numbers": {"0": 1}}'}, "missing"),
        ({"endingOffsets": '{"numbers": {"0": 1, "1": 1, "2": 99999}}'}, "outside"),
        ({"pollTimeoutMs": "soon"}, "pollTimeoutMs must be a whole number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    spark: Any, cluster: LocalCluster, produced: list[Stored], options: dict[str, str], words: str
):
    with pytest.raises(Exception) as failure:
        load(spark, cluster.bootstrap, "numbers", **options).collect()
    assert words in str(failure.value)


def test_a_bad_option_is_told_by_load(spark: Any):
    with pytest.raises(Exception, match=r"the option kafka\.bootstrap\.servers is required"):
        spark.read.format("barnabas").option("subscribe", "numbers").load()


def test_another_schema_is_refused(spark: Any, cluster: LocalCluster, produced: list[Stored]):
    source = spark.read.format("barnabas").option("bootstrap.servers", cluster.bootstrap)
    with pytest.raises(Exception, match="the schema of a topic is fixed"):
        source.option("subscribe", "numbers").schema("value string").load().collect()


def test_an_unreachable_address_fails_in_seconds_and_is_named(spark: Any):
    port = free_ports(1)[0]
    began = time.monotonic()
    with pytest.raises(Exception) as failure:
        load(spark, f"127.0.0.1:{port}", "numbers").collect()
    assert time.monotonic() - began < 15
    assert f"127.0.0.1:{port}" in str(failure.value)
    assert "refused" in str(failure.value)

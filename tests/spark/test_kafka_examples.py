"""The examples of Spark's guide to its Kafka source, one by one, with the one word changed.

From "Structured Streaming + Kafka Integration Guide", "Reading Data from Kafka". Only the addresses
differ, and `load()` is followed by a query.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from barnabas import Producer
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def servers(cluster: LocalCluster) -> Iterator[str]:
    """Addresses of a cluster whose topic1 has 60 records in each of two partitions, topic2 five."""

    async def fill() -> None:
        await create_topic(cluster.bootstrap, "topic1", 2)
        await create_topic(cluster.bootstrap, "topic2", 1)
        await produce(cluster.bootstrap, 0, 60, 5)

    asyncio.run(fill())
    yield cluster.bootstrap


async def produce(bootstrap: str, first: int, each: int, second: int) -> None:
    """Produce `each` records to both partitions of topic1, and `second` to topic2."""
    async with Producer(bootstrap, acks="all") as producer:
        for number in range(first, first + each):
            for partition in (0, 1):
                key, value = b"k%d" % number, b"v%d" % number
                headers = [("trace", b"%d" % number)]
                await producer.send("topic1", value, key, partition=partition, headers=headers)
        for number in range(first, first + second):
            await producer.send("topic2", b"v%d" % number, b"k%d" % number)


# ---- "Creating a Kafka Source for Batch Queries"


def test_batch_subscribe_to_1_topic_defaults_to_the_earliest_and_latest_offsets(
    spark: Any, servers: str
):
    df = (
        spark
        .read
        .format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "topic1")
        .load()
    )  # fmt: skip
    rows = df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
    assert sorted(rows) == sorted((f"k{n}", f"v{n}") for n in range(60) for _ in (0, 1))


def test_batch_subscribe_to_multiple_topics_specifying_explicit_kafka_offsets(
    spark: Any, servers: str
):
    df = (
        spark
        .read
        .format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "topic1,topic2")
        .option("startingOffsets", """{"topic1":{"0":23,"1":-2},"topic2":{"0":-2}}""")
        .option("endingOffsets", """{"topic1":{"0":50,"1":-1},"topic2":{"0":-1}}""")
        .load()
    )  # fmt: skip
    assert df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").count() == 27 + 60 + 5


def test_batch_subscribe_to_a_pattern_at_the_earliest_and_latest_offsets(spark: Any, servers: str):
    df = (
        spark
        .read
        .format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribePattern", "topic.*")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )  # fmt: skip
    assert df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").count() == 125


# ---- "Creating a Kafka Source for Streaming Queries"


def subscribe_to_1_topic(spark: Any, servers: str) -> Any:
    df = (
        spark
        .readStream
        .format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "topic1")
        .load()
    )  # fmt: skip
    return df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")


def subscribe_to_1_topic_with_headers(spark: Any, servers: str) -> Any:
    df = (
        spark
        .readStream
        .format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "topic1")
        .option("includeHeaders", "true")
        .load()
    )  # fmt: skip
    return df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "headers")


def subscribe_to_multiple_topics(spark: Any, servers: str) -> Any:
    df = (
        spark
        .readStream
        .format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "topic1,topic2")
        .load()
    )  # fmt: skip
    return df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")


def subscribe_to_a_pattern(spark: Any, servers: str) -> Any:
    df = (
        spark
        .readStream
        .format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribePattern", "topic.*")
        .load()
    )  # fmt: skip
    return df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")


def test_streams_read_what_is_produced_after_their_start(
    spark: Any, servers: str, tmp_path: Path, run: asyncio.Runner
):
    examples = {
        "one": (subscribe_to_1_topic, 20),
        "headers": (subscribe_to_1_topic_with_headers, 20),
        "several": (subscribe_to_multiple_topics, 23),
        "pattern": (subscribe_to_a_pattern, 23),
    }
    queries = {}
    try:
        for name, (example, _) in examples.items():
            writing = example(spark, servers).writeStream.format("memory").queryName(name)
            queries[name] = writing.option("checkpointLocation", str(tmp_path / name)).start()
            queries[name].processAllAvailable()  # it has found its starting offsets
        run.run(produce(servers, 100, 10, 3))
        for name, (_, count) in examples.items():
            queries[name].processAllAvailable()
            assert spark.table(name).count() == count, name
    finally:
        for query in queries.values():
            query.stop()
    headers = spark.table("headers").first()["headers"]
    assert [(header["key"], bytes(header["value"])[:1]) for header in headers] == [("trace", b"1")]

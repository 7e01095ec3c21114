"""df.write and df.writeStream with format("barnabas"): what readers find, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from barnabas import Consumer
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.sink_support import open_transactions, settled_values, values
from tests.support.cluster_state import create_topic

pytestmark = pytest.mark.spark
COUNT = 1_000


def numbers(spark: Any, tasks: int = 3, count: int = COUNT) -> Any:
    return spark.range(0, count, 1, tasks).selectExpr("CAST(id AS STRING) AS value")


def save(frame: Any, cluster: LocalCluster, topic: str | None, **options: str) -> None:
    given = {"kafka.bootstrap.servers": cluster.bootstrap} | options
    if topic is not None:
        given["topic"] = topic
    frame.write.format("barnabas").mode("append").options(**given).save()


def expected(count: int = COUNT) -> list[bytes]:
    return sorted(b"%d" % number for number in range(count))


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_batch(spark: Any, cluster: LocalCluster, run: asyncio.Runner, delivery: str) -> None:
    topic = f"batch-{delivery}"
    run.run(create_topic(cluster.bootstrap, topic, 3))
    save(numbers(spark), cluster, topic, delivery=delivery)
    assert run.run(settled_values(cluster.bootstrap, topic)) == expected()
    assert run.run(open_transactions(cluster.bootstrap)) == []


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_stream(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path, delivery: str
) -> None:
    topic = f"stream-{delivery}"
    run.run(create_topic(cluster.bootstrap, topic, 3))
    source = tmp_path / "source"
    source.mkdir()
    for number in range(3):
        lines = range(number * 100, number * 100 + 100)
        (source / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    for _ in range(2):  # the second run finds nothing new
        query = (
            spark.readStream.option("maxFilesPerTrigger", "1")
            .text(str(source))
            .repartition(2)
            .writeStream.format("barnabas")
            .option("kafka.bootstrap.servers", cluster.bootstrap)
            .option("topic", topic)
            .option("delivery", delivery)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert run.run(settled_values(cluster.bootstrap, topic)) == expected(300)
    assert run.run(open_transactions(cluster.bootstrap)) == []


def test_every_column_of_kafkas_sink(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner
) -> None:
    for topic in ("columns-a", "columns-b"):
        run.run(create_topic(cluster.bootstrap, topic, 2))
    frame = spark.sql(
        "SELECT 'k' AS key, CAST('v' AS BINARY) AS value, 'columns-a' AS topic, 1 AS partition,"
        " array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers"
        " UNION ALL SELECT NULL, NULL, 'columns-b', 0, NULL"
    )
    save(frame, cluster, None)

    async def records(topic: str) -> list[Any]:
        async with Consumer(
            bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign(await consumer.partitions_for(topic))
            found: list[Any] = []
            while not found:
                found += await consumer.poll(timeout_ms=200)
            return [(r.partition, r.key, r.value, r.headers) for r in found]

    assert run.run(records("columns-a")) == [(1, b"k", b"v", [("h", b"x")])]
    assert run.run(records("columns-b")) == [(0, None, None, [])]


@pytest.mark.parametrize(
    ("sql", "options", "words"),
    [
        ("1 AS value", {"topic": "t"}, "value attribute type must be STRING or BINARY, not INT"),
        ("'k' AS key", {"topic": "t"}, "Required attribute 'value' not found"),
        ("'v' AS value", {}, "topic option required when no 'topic' attribute is present"),
        ("'v' AS value, CAST(NULL AS STRING) AS topic", {}, "KAFKA_NULL_TOPIC_IN_DATA"),
        ("'v' AS value", {"topic": "t", "kafka.linger": "1"}, "did you mean 'kafka.linger.ms'"),
        (
            "'v' AS value",
            {"topic": "t", "kafka.max.block.ms": "500"},
            "no topic 't'|topic 't'|UNKNOWN_TOPIC",
        ),
    ],
)
def test_what_cannot_be_written_is_one_clear_error(
    spark: Any, cluster: LocalCluster, sql: str, options: dict[str, str], words: str
) -> None:
    frame = spark.sql(f"SELECT {sql}")
    given = dict(options)
    with pytest.raises(Exception, match=words):
        save(frame, cluster, given.pop("topic", None), **given)


def test_only_append(spark: Any, cluster: LocalCluster) -> None:
    frame = numbers(spark)
    writer = frame.write.format("barnabas").mode("overwrite").option("topic", "t")
    with pytest.raises(Exception, match="overwrite|truncate"):
        writer.option("kafka.bootstrap.servers", cluster.bootstrap).save()


@pytest.mark.parametrize(
    ("mode", "words"), [("update", "does not support Update mode"), ("complete", "use append")]
)
def test_a_stream_only_appends(spark: Any, tmp_path: Path, mode: str, words: str) -> None:
    counts = spark.readStream.format("rate").load().groupBy("value").count()
    query = (
        counts.selectExpr("CAST(value AS STRING) AS value")
        .writeStream.format("barnabas")
        .outputMode(mode)
        .option("kafka.bootstrap.servers", "localhost:1")
        .option("topic", "t")
        .option("checkpointLocation", str(tmp_path))
    )
    with pytest.raises(Exception, match=words):
        query.start().awaitTermination(60)


def test_a_task_that_fails_leaves_nothing_visible(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner
) -> None:
    run.run(create_topic(cluster.bootstrap, "failing", 3))
    frame = spark.range(0, COUNT, 1, 3).selectExpr(
        "CAST(IF(id = 900, raise_error('planted'), id) AS STRING) AS value"
    )
    with pytest.raises(Exception, match="planted"):
        save(frame, cluster, "failing", delivery="exactly-once")
    assert run.run(settled_values(cluster.bootstrap, "failing")) == []
    assert run.run(open_transactions(cluster.bootstrap)) == []
    assert run.run(values(cluster.bootstrap, "failing", "read_uncommitted")) != []


def test_a_job_run_again_with_the_same_id_adds_nothing(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner
) -> None:
    run.run(create_topic(cluster.bootstrap, "again", 3))
    for tasks in (3, 2):
        save(numbers(spark, tasks), cluster, "again", delivery="exactly-once", jobId="daily-1")
    assert run.run(settled_values(cluster.bootstrap, "again")) == expected()

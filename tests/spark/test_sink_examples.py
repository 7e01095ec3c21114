"""The writing examples of Spark's Kafka integration guide, with `kafka` changed to `barnabas`.

One more word is needed: a Python data source has no save mode but `append`, and Spark's default is
another one.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.sink_support import values
from tests.support.cluster_state import create_topic

pytestmark = pytest.mark.spark
ROWS = [("a", "1"), ("b", "2"), (None, "3")]
VALUES = [b"1", b"2", b"3"]


@pytest.fixture(params=["topic1", "topic2"])
def topic(request: Any, cluster: LocalCluster, run: asyncio.Runner) -> str:
    """Of the option for the first, of a column for the second."""
    name = f"{request.node.originalname}-{request.param}"
    run.run(create_topic(cluster.bootstrap, name, 2))
    return name


def columns(frame: Any, topic: str) -> tuple[Any, dict[str, str]]:
    if topic.endswith("topic1"):
        return frame.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)"), {"topic": topic}
    named = frame.selectExpr(f"'{topic}' AS topic", "key", "value")
    return named.selectExpr("topic", "CAST(key AS STRING)", "CAST(value AS STRING)"), {}


def test_the_output_of_batch_queries(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, topic: str
) -> None:
    df, options = columns(spark.createDataFrame(ROWS, "key string, value string"), topic)
    (
        df.write.format("barnabas")
        .mode("append")
        .option("kafka.bootstrap.servers", cluster.bootstrap)
        .options(**options)
        .save()
    )
    assert run.run(values(cluster.bootstrap, topic)) == VALUES


def test_a_sink_for_streaming_queries(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, topic: str, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    spark.createDataFrame(ROWS, "key string, value string").write.json(str(source))
    frame = spark.readStream.schema("key string, value string").json(str(source))
    df, options = columns(frame, topic)
    ds = (
        df.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", cluster.bootstrap)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )
    ds.awaitTermination()
    assert run.run(values(cluster.bootstrap, topic)) == VALUES


def test_without_a_mode_spark_says_which_there_is(spark: Any, cluster: LocalCluster) -> None:
    frame = spark.createDataFrame(ROWS, "key string, value string")
    writer = frame.write.format("barnabas").option("topic", "t")
    with pytest.raises(Exception, match="Append"):
        writer.option("kafka.bootstrap.servers", cluster.bootstrap).save()

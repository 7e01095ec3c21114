"""Streams: the size of batches, restarts, added partitions, progress as a group, transactions."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from barnabas import Admin, Producer, TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.support import (
    Kept,
    places,
    produce,
    read_all,
    read_what_there_is,
    stream,
    stream_reader,
    until_stable,
)
from tests.support.cluster_state import create_topic

pytestmark = pytest.mark.spark


def lags(cluster: LocalCluster, group: str) -> dict[int, int]:
    """Return what `barnabas group describe` shows, by partition."""
    command = [sys.executable, "-m", "barnabas_tools.entry", "-b", cluster.bootstrap, "-o", "json"]
    shown = subprocess.run(
        [*command, "group", "describe", group],
        capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    return {row["partition"]: row["lag"] for row in rows}


async def add_partition(bootstrap: str, topic: str, count: int) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_partitions(topic, count)


def test_batches_of_the_size_asked_for_a_restart_and_a_partition_added_meanwhile(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
):
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, "limited", 3))
    stored = run.run(produce(bootstrap, "limited", 240))
    options = {"maxOffsetsPerTrigger": "90", "kafka.group.id": "the-query"}
    first = read_what_there_is(stream(spark, bootstrap, "limited", **options), tmp_path)
    assert [len(batch) for batch in first.batches] == [90, 90, 60]
    assert first.all == places(stored)
    run.run(add_partition(bootstrap, "limited", 4))
    more = run.run(produce(bootstrap, "limited", 40, start=240, partitions=4))
    second = read_what_there_is(stream(spark, bootstrap, "limited", **options), tmp_path)
    assert second.all == places(more)
    assert [p for p, _ in second.all].count(3) == 10
    # The group has the progress of the last batch too.
    assert lags(cluster, "the-query") == {0: 0, 1: 0, 2: 0, 3: 0}
    run.run(produce(bootstrap, "limited", 12, start=280, partitions=4))
    assert lags(cluster, "the-query") == {0: 3, 1: 3, 2: 3, 3: 3}


def test_a_partition_added_while_the_query_runs(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
):
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, "growing", 1))
    stored = run.run(produce(bootstrap, "growing", 10, partitions=1))
    kept = Kept()
    query = kept.query(stream(spark, bootstrap, "growing"), tmp_path).start()
    try:
        query.processAllAvailable()
        run.run(add_partition(bootstrap, "growing", 2))
        stored += run.run(produce(bootstrap, "growing", 10, start=10, partitions=2))
        query.processAllAvailable()
        assert kept.all == places(stored)
        end = json.loads(query.lastProgress["sources"][0]["endOffset"])
        assert end["growing"] == {"0": 15, "1": 5}
        group = end["@barnabas"]["group.id"]
    finally:
        query.stop()
    assert group.startswith("spark-barnabas-source-")
    assert lags(cluster, group).keys() == {0, 1}


def test_read_committed_waits_for_open_transactions_and_leaves_out_aborted_ones(
    cluster: LocalCluster, run: asyncio.Runner
):
    run.run(create_topic(cluster.bootstrap, "payments", 1))
    options = {"startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    reader = stream_reader(cluster.bootstrap, "payments", **options)
    start = reader.initialOffset()

    def next_batch(begin: dict[str, Any]) -> tuple[dict[str, Any], list[bytes | None]]:
        end = reader.latestOffset(begin, ReadAllAvailable())
        return end, [value for _, _, value in read_all(reader, reader.partitions(begin, end))]

    async def transact() -> dict[str, Any]:
        async with Producer(cluster.bootstrap, transactional_id="payer") as payer:
            await payer.init_transactions()
            await payer.begin_transaction()
            await payer.send_and_wait("payments", b"aborted")
            await payer.abort_transaction()
            await payer.begin_transaction()
            await payer.send_and_wait("payments", b"paid")
            during, values = await asyncio.to_thread(next_batch, start)
            assert values == []
            assert during["payments"] == {"0": 2}, "the aborted record and its marker"
            await payer.commit_transaction()
        await until_stable(cluster.bootstrap, TopicPartition("payments", 0), 4)
        return during

    during = run.run(transact())
    end, values = next_batch(during)
    assert values == [b"paid"]
    assert end["payments"] == {"0": 4}
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    reader.stop()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets is for batches: a stream has no end"),
        ({"startingOffsets": "soon"}, "startingOffsets is neither"),
        ({"subscribe": "no-such-topic"}, "topic 'no-such-topic' does not exist"),
    ],
)
def test_a_stream_that_cannot_be_read_is_refused_with_the_reason(
    spark: Any, cluster: LocalCluster, tmp_path: Path, options: dict[str, str], words: str
):
    with pytest.raises(Exception) as failure:
        read_what_there_is(stream(spark, cluster.bootstrap, "numbers", **options), tmp_path)
    assert words in str(failure.value)
    assert "UnboundLocalError" not in str(failure.value)

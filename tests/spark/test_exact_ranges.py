"""A read ends where planning saw the high watermark, whatever happens in between."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from barnabas_tools.local.cluster import LocalCluster
from pyspark_barnabas.reading.errors import DataLossError

from tests.spark.support import (
    PARTITIONS,
    Stored,
    batch_reader,
    collect,
    load,
    produce,
    read_all,
    read_into,
)
from tests.support.cluster_state import create_topic, leaders, wait_until_in_sync

pytestmark = pytest.mark.spark

COUNT = 600


def filled(run: asyncio.Runner, cluster: LocalCluster, topic: str) -> list[Stored]:
    run.run(create_topic(cluster.bootstrap, topic, PARTITIONS))
    return run.run(produce(cluster.bootstrap, topic, COUNT))


def shown(stored: list[Stored]) -> list[tuple[int, int, bytes | None]]:
    return [(record.partition, record.offset, record.value) for record in stored]


def test_records_produced_after_planning_are_not_read(cluster: LocalCluster, run: asyncio.Runner):
    stored = filled(run, cluster, "growing")
    reader = batch_reader(cluster.bootstrap, "growing")
    planned = reader.partitions()
    run.run(produce(cluster.bootstrap, "growing", 300, start=COUNT))
    assert read_all(reader, planned) == shown(stored)
    assert read_all(reader, planned) == shown(stored)  # a second attempt reads the same


def test_a_leader_killed_between_planning_and_reading_costs_no_row(
    cluster: LocalCluster, run: asyncio.Runner
):
    stored = filled(run, cluster, "killed")
    reader = batch_reader(cluster.bootstrap, "killed")
    planned = reader.partitions()
    victim = run.run(leaders(cluster.bootstrap, "killed"))[0]
    cluster.kill(victim)
    try:
        assert read_all(reader, planned) == shown(stored)
    finally:
        cluster.start_broker(victim)
    run.run(wait_until_in_sync(cluster.bootstrap, "killed"))


def test_a_query_planned_before_a_leader_died_returns_exactly_its_rows(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner
):
    stored = filled(run, cluster, "query")
    frame = load(spark, cluster.bootstrap, "query").cache()
    victim = run.run(leaders(cluster.bootstrap, "query"))[0]
    assert frame.rdd.getNumPartitions() == PARTITIONS  # this plans the read
    run.run(produce(cluster.bootstrap, "query", 30, start=COUNT))
    cluster.kill(victim)
    try:
        assert collect(frame) == stored
    finally:
        frame.unpersist()
        cluster.start_broker(victim)
    run.run(wait_until_in_sync(cluster.bootstrap, "query"))


def test_an_end_above_the_high_watermark_is_waited_for_and_then_data_loss(
    cluster: LocalCluster, run: asyncio.Runner
):
    stored = filled(run, cluster, "beyond")
    reader = batch_reader(cluster.bootstrap, "beyond", pollTimeoutMs="1500")
    last = [r for r in stored if r.partition == 0][-1].offset
    planned = reader.partitions()[0]
    too_far = replace(planned, end=last + 11)
    began = time.monotonic()
    with pytest.raises(DataLossError, match=f"high watermark, {last + 1}, is below the planned"):
        read_all(reader, [too_far])
    assert 1.4 < time.monotonic() - began < 10


def test_an_end_that_is_reached_while_the_task_waits(cluster: LocalCluster, run: asyncio.Runner):
    stored = filled(run, cluster, "late")
    reader = batch_reader(cluster.bootstrap, "late")
    planned = reader.partitions()[0]
    ahead = replace(planned, end=planned.end + 10)

    async def read_while_producing() -> tuple[list[Any], list[Stored]]:
        rows: list[Any] = []
        reading = asyncio.create_task(asyncio.to_thread(read_into, rows, reader, ahead))
        while len(rows) < planned.end - planned.start:
            await asyncio.sleep(0.01)
        # Everything has been read: the task is at the high watermark.
        more = await produce(cluster.bootstrap, "late", 60, start=COUNT)
        await reading
        return rows, more

    rows, more = run.run(read_while_producing())
    wanted = [r for r in [*stored, *more] if r.partition == 0 and r.offset < ahead.end]
    assert rows == shown(wanted)

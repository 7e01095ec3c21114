"""Streams whose brokers die, and whose topics are deleted and created again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from barnabas import Admin
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.support import Kept, places, produce, read_what_there_is, stream
from tests.support.cluster_state import create_topic, leaders, wait_until_in_sync

pytestmark = pytest.mark.spark


async def delete(bootstrap: str, topic: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.delete_topics([topic])


def test_a_leader_killed_during_a_stream_costs_no_record_and_repeats_none(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
):
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, "busy", 3))
    stored = run.run(produce(bootstrap, "busy", 300))
    kept = Kept()
    frame = stream(spark, bootstrap, "busy", maxOffsetsPerTrigger="200")
    query = kept.query(frame, tmp_path).start()
    try:
        victim = run.run(leaders(bootstrap, "busy"))[0]
        cluster.kill(victim)
        stored += run.run(produce(bootstrap, "busy", 300, start=300))
        query.processAllAvailable()
        assert kept.all == places(stored)
        cluster.start_broker(victim)
        run.run(wait_until_in_sync(bootstrap, "busy"))
        stored += run.run(produce(bootstrap, "busy", 30, start=600))
        query.processAllAvailable()
    finally:
        query.stop()
    assert kept.all == places(stored)


def test_a_topic_created_again_between_two_runs_is_an_error(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
):
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, "again", 1))
    run.run(produce(bootstrap, "again", 10, partitions=1))
    read_what_there_is(stream(spark, bootstrap, "again"), tmp_path)
    run.run(delete(bootstrap, "again"))
    run.run(create_topic(bootstrap, "again", 1))
    # As many records as before: the offsets alone would look like nothing new.
    stored = run.run(produce(bootstrap, "again", 10, partitions=1))
    with pytest.raises(Exception, match="PARTITIONS_DELETED.*deleted and created again"):
        read_what_there_is(stream(spark, bootstrap, "again"), tmp_path)
    frame = stream(spark, bootstrap, "again", failOnDataLoss="false")
    assert read_what_there_is(frame, tmp_path).all == places(stored)


def test_a_topic_deleted_while_the_query_runs_ends_it_with_the_reason(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
):
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, "doomed", 1))
    run.run(produce(bootstrap, "doomed", 10, partitions=1))
    query = Kept().query(stream(spark, bootstrap, "doomed"), tmp_path).start()
    try:
        query.processAllAvailable()
        run.run(delete(bootstrap, "doomed"))
        with pytest.raises(Exception, match="PARTITIONS_DELETED.*doomed-0 have been deleted"):
            query.awaitTermination(120)
        assert not query.isActive
    finally:
        query.stop()

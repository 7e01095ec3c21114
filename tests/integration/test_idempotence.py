"""Idempotent producers on real brokers: kill -9 of leaders under load leaves each value once."""

import asyncio

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import choose, create_topic, wait_until_in_sync
from tests.support.workload import Workload

pytestmark = pytest.mark.integration

PARTITIONS = 3
ROUNDS = 3
# Small batches, sent without a pause: several of each partition are in flight when a leader dies.
LOAD = {"pause": 0.0, "batch_size": 300}


async def _kill_leaders(cluster: LocalCluster, workload: Workload) -> None:
    for _ in range(ROUNDS):
        await workload.acked_in_every_partition(300)
        leader = await choose(cluster.bootstrap, workload.topic, "leader")
        await asyncio.to_thread(cluster.kill, leader)
        await workload.acked_in_every_partition(300)
        await asyncio.to_thread(cluster.restart, leader)
        await wait_until_in_sync(cluster.bootstrap, workload.topic)


async def test_leaders_killed_under_load_leave_every_value_once_and_in_order(
    cluster: LocalCluster,
) -> None:
    topic = "once"
    await create_topic(cluster.bootstrap, topic, PARTITIONS)
    async with Workload(topic, PARTITIONS, cluster.bootstrap, **LOAD) as workload:
        await _kill_leaders(cluster, workload)
        await workload.stop()
        assert not workload.failed
        assert workload.metrics.batches_retried > 0, "no batch was in flight when a leader died"
        (await workload.verdict()).assert_good()

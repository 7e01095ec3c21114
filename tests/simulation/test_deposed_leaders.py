"""A leader that does not know that it was replaced answers consumers that do not know it either."""

import asyncio

import pytest
from barnabas import Admin, Consumer
from barnabas.consumer.config import AutoOffsetReset
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign import state
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import led_by, send

KEY = TopicPartition("deposed", 0)
CONFIG = {
    "zookeeper.session.timeout.ms": "6000",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
}
GROUP = "readers"


async def _deposed(cluster: SimulatedCluster) -> int:
    """A leader that is cut from ZooKeeper and was replaced; it has the first 5 of 10 records."""
    await cluster.start()
    old = next(b for b in cluster.broker_ids if b != state.controller(cluster))
    new = next(b for b in cluster.broker_ids if b != old)
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(
            KEY.topic, assignments={0: [old, new]}, configs={"min.insync.replicas": "1"}
        )
    await send(cluster, KEY, (b"old-%d" % number for number in range(5)))
    cluster.part_from_zookeeper(old)
    await led_by(cluster, KEY, new)
    await send(cluster, KEY, (b"new-%d" % number for number in range(5)))
    return old


def _member(cluster: SimulatedCluster, name: str, policy: AutoOffsetReset, *ask: int) -> Consumer:
    return Consumer(
        KEY.topic,
        bootstrap_servers=cluster.bootstrap_of(ask),
        runtime=cluster.client_runtime(name),
        group_id=GROUP,
        auto_offset_reset=policy,
        enable_auto_commit=False,
    )


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_a_group_goes_on_behind_what_a_deposed_leader_has(policy: AutoOffsetReset) -> None:
    """Its next member asks that leader first. With a reset it read all records again."""

    async def story() -> None:
        cluster = SimulatedCluster(seed=3, config=CONFIG)
        old = await _deposed(cluster)
        others = [broker_id for broker_id in cluster.broker_ids if broker_id != old]
        async with _member(cluster, "first", "earliest", *others) as first:
            read = 0
            while read < 10:
                read += len(await first.poll(timeout_ms=500))
            await first.commit()
        async with _member(cluster, "second", policy, old) as second:
            sending = asyncio.ensure_future(send(cluster, KEY, [b"last"]))
            found = []
            async with asyncio.timeout(60):
                while not found:
                    found = [(r.offset, r.value) for r in await second.poll(timeout_ms=500)]
            assert found == [(10, b"last")]
            await sending

    run(story(), seed=3, max_time=300.0)

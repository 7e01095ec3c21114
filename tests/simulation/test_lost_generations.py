"""A member loses its generation while its listener gives some partitions up."""

import asyncio
from collections.abc import Sequence

from barnabas import Admin, Consumer
from barnabas.consumer import RebalanceListener
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import send

KEPT, DROPPED = TopicPartition("kept", 0), TopicPartition("dropped", 0)


class Slow(RebalanceListener):
    """Takes longer to give partitions up than the group waits."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("revoked", list(partitions)))
        await asyncio.sleep(40)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("lost", list(partitions)))


def member(cluster: SimulatedCluster, name: str) -> Consumer:
    return Consumer(
        group_id="g",
        client_id=name,
        auto_offset_reset="earliest",
        partition_assignment_strategy=["cooperative-sticky"],
        max_poll_interval_ms=10_000,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime(name),
    )


async def _story() -> None:
    cluster = SimulatedCluster(seed=4, config={"group.initial.rebalance.delay.ms": "0"})
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        for topic in (KEPT.topic, DROPPED.topic):
            await admin.create_topic(topic, partitions=1, replication_factor=3)
    listener, read = Slow(), []

    async def read_on(consumer: Consumer) -> None:
        async for record in consumer:
            read.append(record.value)

    async with member(cluster, "first") as first, member(cluster, "second") as second:
        first.subscribe([KEPT.topic, DROPPED.topic], listener)
        await send(cluster, KEPT, [b"before"])
        assert [record.value for record in await first.poll()] == [b"before"]
        await first.commit()
        first.subscribe([KEPT.topic], listener)
        reading = asyncio.create_task(read_on(first))
        while not listener.calls:
            await asyncio.sleep(0.1)
        second.subscribe([KEPT.topic, DROPPED.topic])
        await send(cluster, KEPT, [b"by the second"])
        assert [record.value for record in await second.poll()] == [b"by the second"]
        await second.close()
        await send(cluster, KEPT, [b"after"])
        while not read:
            await asyncio.sleep(0.1)
        assert read == [b"after"]
        assert listener.calls == [("revoked", [DROPPED]), ("lost", [KEPT])]
        reading.cancel()


def test_the_partitions_that_stayed_are_lost_too() -> None:
    """They were kept, with positions from before another member had read them."""
    run(_story(), seed=4, max_time=300.0)

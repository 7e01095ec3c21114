"""Partitions that a cooperative assignor withholds find a reader, whoever restarts meanwhile."""

import asyncio
from collections.abc import Sequence

import pytest
from barnabas import Admin, Consumer, RebalanceListener
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

PARTITIONS = 6


class _NeverGivesUp(RebalanceListener):
    """The application stands still as soon as it must give partitions up."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.asked.set()
        await asyncio.Event().wait()


class _Group:
    """Static members, each iterating in a task; no session ends during a test."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.members: dict[str, Consumer] = {}
        self._cluster = cluster
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def join(
        self, name: str, topic: str, listener: RebalanceListener | None = None, node: str = ""
    ) -> None:
        consumer = Consumer(
            bootstrap_servers=self._cluster.bootstrap,
            runtime=self._cluster.client_runtime(node or name),
            group_id="g",
            group_instance_id=name,
            client_id=name,
            partition_assignment_strategy=["cooperative-sticky"],
            session_timeout_ms=300_000,
            heartbeat_interval_ms=500,
        )
        consumer.subscribe([topic], listener)
        self.members[name] = consumer
        self._tasks[name] = asyncio.create_task(self._read(consumer))

    async def _read(self, consumer: Consumer) -> None:
        async with consumer:
            async for _ in consumer:
                pass

    def die(self, name: str) -> None:
        """Its connections end, and what its tasks still send goes nowhere."""
        self._cluster.network.kill(name)
        self._cluster.network.lose_power(name)
        del self.members[name]
        self._tasks.pop(name).cancel()

    async def until_all_is_read(self, topics: Sequence[str]) -> None:
        """Until each partition has exactly one reader."""
        wanted = sorted(TopicPartition(topic, n) for topic in topics for n in range(PARTITIONS))
        async with asyncio.timeout(60):
            while wanted != sorted(tp for c in self.members.values() for tp in c.assignment()):
                await asyncio.sleep(0.1)

    async def end(self) -> None:
        for consumer in self.members.values():
            await consumer.close()
        await asyncio.gather(*self._tasks.values())


@pytest.mark.parametrize("leader_restarts", [True, False])
def test_what_a_restarted_static_member_gave_up_finds_a_reader(leader_restarts: bool) -> None:
    """The first to join leads. It gives partitions up itself, or another member does."""

    async def scenario() -> None:
        cluster = SimulatedCluster(seed=3, config={"group.initial.rebalance.delay.ms": "0"})
        await cluster.start()
        topics = ["orders"] if leader_restarts else ["flights", "orders"]
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            for topic in topics:
                await admin.create_topic(topic, PARTITIONS, 3)
        group = _Group(cluster)
        if not leader_restarts:
            group.join("leader", "flights")
            await group.until_all_is_read(["flights"])
        listener = _NeverGivesUp()
        group.join("first", "orders", listener)
        await group.until_all_is_read(topics)
        group.join("second", "orders")
        await asyncio.wait_for(listener.asked.wait(), 60)
        group.die("first")
        group.join("first", "orders", node="first again")
        await group.until_all_is_read(topics)
        assert len(group.members["first"].assignment()) == PARTITIONS // 2
        await group.end()

    run(scenario(), seed=3, max_time=600.0)

"""A process that stands still finds its timers due all at once; its polls must cope with that."""

import asyncio
from collections.abc import Sequence

from barnabas import Admin, Consumer, RebalanceListener
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign.clients.processes import run_as, virtual_loop
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run


class Slow(RebalanceListener):
    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.begun.set()
        await asyncio.sleep(0.1)


async def member_that_is_paused_in_its_listener() -> list[TopicPartition]:
    cluster = SimulatedCluster(1, config={"group.initial.rebalance.delay.ms": "0"})
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic("orders", 1, 3)
    listener, owned = Slow(), list[TopicPartition]()

    async def work() -> None:
        runtime = cluster.client_runtime("member")
        async with Consumer(
            bootstrap_servers=cluster.bootstrap, runtime=runtime, group_id="g"
        ) as consumer:
            consumer.subscribe("orders", listener)
            for _ in range(20):
                await consumer.poll(timeout_ms=1_000)
            owned.extend(consumer.assignment())

    task = run_as("member", work())
    await listener.begun.wait()
    virtual_loop().pause_node("member")
    await asyncio.sleep(5.0)
    virtual_loop().resume_node("member")
    await task
    return owned


def test_a_poll_whose_time_is_over_when_the_rebalance_ends_raises_nothing() -> None:
    found = run(member_that_is_paused_in_its_listener(), seed=1, max_time=300.0)
    assert found == [TopicPartition("orders", 0)]

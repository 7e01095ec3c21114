"""A topic is deleted while a broker without a replica of it is not registered."""

import asyncio

from barnabas import Admin
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run


async def _story() -> None:
    cluster = SimulatedCluster(seed=4)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        controller = (await admin.describe_cluster()).controller_id
        away = next(b for b in cluster.broker_ids if b != controller)
        others = [b for b in cluster.broker_ids if b != away]
        await admin.create_topic("stays", assignments={0: others})
        await admin.create_topic("gone", assignments=dict.fromkeys(range(4), others))
        cache = cluster.broker(away).metadata_cache
        assert len(cache.partitions("gone")) == 4
        cluster.part_from_zookeeper(away)
        while len((await admin.describe_cluster()).brokers) == 3:
            await asyncio.sleep(0.1)
        await admin.delete_topics(["gone"])
        cluster.reunite_with_zookeeper(away)
        async with asyncio.timeout(60):
            while cache.contains("gone"):
                await asyncio.sleep(0.1)
        assert len(cache.partitions("stays")) == 1
        await admin.create_topic("gone", assignments={0: others})
        assert len(cache.partitions("gone")) == 1


def test_a_broker_that_registers_again_forgets_what_was_deleted_meanwhile() -> None:
    """It answered that the topic exists until its restart, and mixed its partitions with those of
    the next topic of that name."""
    run(_story(), seed=4, max_time=600.0)

"""A rebalance that waits for a member names it, to the other members and to administrators."""

import asyncio

from barnabas import Admin, Consumer
from barnabas.group.explaining import About
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups_on_clusters import TOPIC, Workers, member, story

OPTIONS = {"max_poll_interval_ms": 20_000, "heartbeat_interval_ms": 500}


def waits_for(consumer: Consumer, client_id: str) -> list[str]:
    """What it says of its coordinator's wait for a client."""
    return [line for line in consumer.health() if f"(client {client_id}, host" in line]


async def poll_until_shared(workers: Workers, consumer: Consumer) -> None:
    while len(consumer.assignment()) != 3 or len(workers.consumers["a"].assignment()) != 3:
        await consumer.poll(timeout_ms=100)


def test_a_rebalance_names_the_member_that_does_not_join() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster, **OPTIONS)
        workers.join("a")
        stuck = member(cluster, "b", TOPIC, group_instance_id="till-7", **OPTIONS)
        await stuck.start()
        await poll_until_shared(workers, stuck)
        workers.join("c")
        await asyncio.sleep(2.0)  # b sends heartbeats and does not poll
        for name in ("a", "c"):
            (line,) = waits_for(workers.consumers[name], "b")
            assert line.startswith("group g: its coordinator waits at most 1"), line
            assert " till-7-" in line and "instance till-7) to join;" in line
            assert "unless it sends a heartbeat" in line
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            described = (await admin.describe_groups(["g"]))["g"]
            assert described.state == "PreparingRebalance" and described.generation > 0
            (late,) = described.awaiting.members
            assert (late.client_id, late.group_instance_id) == ("b", "till-7")
            sentences = await admin.explain_group("g", 1.0)
        told = [s.text for s in sentences if s.about is About.REBALANCE]
        assert told[-1].startswith("the coordinator waits at most") and "(client b," in told[-1]
        await poll_until_has_nothing_to_wait_for(workers, stuck)
        await stuck.close()
        await workers.end()

    story(scenario)


async def poll_until_has_nothing_to_wait_for(workers: Workers, stuck: Consumer) -> None:
    while len(stuck.assignment()) != 2:
        await stuck.poll(timeout_ms=100)
    for consumer in workers.consumers.values():
        while not any("reads 2 partitions" in line for line in consumer.health()):
            await asyncio.sleep(0.1)
        assert not waits_for(consumer, "b"), "it has joined"

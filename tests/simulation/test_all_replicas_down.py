"""All replicas are down: wait for one that has everything, or take the first that returns."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, ConfigResource
from barnabas_common.events import EventKind
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.config_world import store_of, until, write_overrides
from tests.support.delivery import History, judge
from tests.support.whole_cluster import TP, produce, read_back

Story = Callable[[SimulatedCluster, Admin, History], Awaitable[None]]


def run_story(story: Story, seed: int = 1) -> None:
    """Broker 1 alone is in the ISR and has the last records. Then it dies too, and 2 returns."""

    async def main() -> None:
        cluster = SimulatedCluster(seed)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, assignments={0: [1, 2, 3]})
            history = History()
            await produce(cluster, history, range(20))
            cluster.kill(2)
            cluster.kill(3)
            await produce(cluster, history, range(20, 40))
            cluster.kill(1)
            cluster.start_broker(2)
            await cluster.serving()
            await leaderless(cluster)
            await story(cluster, admin, history)

    run(main(), seed=seed, max_time=3600)


async def leaderless(cluster: SimulatedCluster) -> None:
    """Wait until the controller has tried to elect, and has reported why it could not."""

    def refused() -> bool:
        events = cluster.broker(2).events.since(0)
        return any(
            event.kind is EventKind.ELECTION_REFUSED and "NoReplicaOnline" in event.cause
            for event in events
        )

    await until(refused)


async def led_by(admin: Admin, broker_id: int) -> None:
    async with asyncio.timeout(60):
        while (await admin.describe_topic(TP.topic)).partitions[0].leader_id != broker_id:
            await asyncio.sleep(0.1)


def test_by_default_the_partition_waits_for_the_one_that_has_everything() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin, history: History) -> None:
        await asyncio.sleep(60)
        partition = (await admin.describe_topic(TP.topic)).partitions[0]
        assert (partition.leader_id, partition.in_sync_replicas) == (-1, [1])
        cluster.start_broker(1)
        await led_by(admin, 1)
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    run_story(story)


async def by_topic(cluster: SimulatedCluster, admin: Admin) -> None:
    changes: dict[str, str | None] = {"unclean.leader.election.enable": "true"}
    await admin.incremental_alter_configs(ConfigResource.topic(TP.topic), changes)


async def by_cluster_default(cluster: SimulatedCluster, admin: Admin) -> None:
    changes: dict[str, str | None] = {"unclean.leader.election.enable": "true"}
    await admin.incremental_alter_configs(ConfigResource.all_brokers(), changes)


async def by_kafkas_tools(cluster: SimulatedCluster, admin: Admin) -> None:
    store = await store_of(cluster)
    overrides = {"unclean.leader.election.enable": "true"}
    await write_overrides(store, f"topics/{TP.topic}", overrides)


async def by_request(cluster: SimulatedCluster, admin: Admin) -> None:
    assert await admin.elect_leaders("unclean", [TP]) == {TP: None}


@pytest.mark.parametrize("allow", [by_topic, by_cluster_default, by_kafkas_tools, by_request])
def test_an_unclean_election_takes_who_is_there_at_once_and_loses_what_it_lacks(
    allow: Callable[[SimulatedCluster, Admin], Awaitable[None]],
) -> None:
    async def story(cluster: SimulatedCluster, admin: Admin, history: History) -> None:
        began = cluster.clock.monotonic()
        await allow(cluster, admin)
        await led_by(admin, 2)
        assert cluster.clock.monotonic() - began < 5
        assert [int(value) for _, value in await read_back(cluster)] == list(range(20))
        await produce(cluster, History(), range(100, 110))
        cluster.start_broker(1)
        cluster.start_broker(3)
        await cluster.serving()
        async with asyncio.timeout(60):
            while len((await admin.describe_topic(TP.topic)).partitions[0].in_sync_replicas) < 3:
                await asyncio.sleep(0.1)
        kept = [int(value) for _, value in await read_back(cluster)]
        assert kept == [*range(20), *range(100, 110)]

    run_story(story)


def test_a_setting_that_says_no_is_kept_against_the_clusters_default() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin, history: History) -> None:
        topic = ConfigResource.topic(TP.topic)
        no: dict[str, str | None] = {"unclean.leader.election.enable": "false"}
        await admin.incremental_alter_configs(topic, no)
        await by_cluster_default(cluster, admin)
        await asyncio.sleep(30)
        assert (await admin.describe_topic(TP.topic)).partitions[0].leader_id == -1
        await admin.incremental_alter_configs(topic, {"unclean.leader.election.enable": None})
        await led_by(admin, 2)

    run_story(story)

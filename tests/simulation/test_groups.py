"""Consumer groups on a whole cluster: what members are told, and what outlives a coordinator."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas import Admin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.raw_groups import SETTINGS, Coordinators, RawMember, settle

T = TypeVar("T")
ORDERS = TopicPartition("orders", 0)
MAX_SECONDS = 900.0

Story = Callable[[SimulatedCluster, Coordinators], Awaitable[T]]


def in_cluster(story: Story[T], seed: int = 1, **config: str) -> T:
    """Run a story in a cluster that has the topic `orders`."""

    async def scenario() -> T:
        changed = {name.replace("_", "."): value for name, value in config.items()}
        cluster = SimulatedCluster(seed, config={**SETTINGS, **changed})
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", partitions=3, replication_factor=3)
        coordinators = Coordinators(cluster)
        result = await story(cluster, coordinators)
        await coordinators.close()
        return result

    return run(scenario(), seed=seed, max_time=MAX_SECONDS)


async def members_of(coordinators: Coordinators, count: int) -> list[RawMember]:
    broker_id = await coordinators.find("g")
    return [RawMember(coordinators, broker_id, "g") for _ in range(count)]


def test_members_join_and_each_gets_its_assignment() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await members_of(coordinators, 3)
        joined = await settle(members)
        assert {response.generation_id for response in joined} == {1}
        assert {response.protocol_name for response in joined} == {"range"}
        assert len(joined[0].members) == 3 and not joined[1].members, "only the leader is told"
        assert [await member.heartbeat() for member in members] == [ErrorCode.NONE] * 3
        described = await coordinators.describe("g")
        assert (described.group_state, described.protocol_data) == ("Stable", "range")
        assert {m.member_id for m in described.members} == {m.member_id for m in members}

    in_cluster(story)


def test_commits_and_membership_outlive_the_coordinator() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await members_of(coordinators, 2)
        await settle(members)
        for offset in range(1, 6):
            assert await members[0].commit(ORDERS, offset, f"at {offset}") is ErrorCode.NONE
        first = members[0].broker_id
        cluster.kill(first)
        while (second := await coordinators.find("g")) == first:
            await asyncio.sleep(0.1)
        (found,) = await coordinators.fetch("g", ORDERS)
        assert (found.committed_offset, found.metadata) == (5, "at 5")
        for member in members:
            member.broker_id = second
        assert [await member.heartbeat() for member in members] == [ErrorCode.NONE] * 2
        assert await members[1].commit(ORDERS, 9) is ErrorCode.NONE
        assert await coordinators.committed("g", ORDERS) == 9

    in_cluster(story)

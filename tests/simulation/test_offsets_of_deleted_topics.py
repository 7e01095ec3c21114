"""The offsets of a deleted topic go with it, or a group would begin there in the next one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from barnabas import Admin
from barnabas_broker.coordinator.group.group_log import GroupLog
from barnabas_common.messages.groups import OffsetCommitPartition, OffsetCommitRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.moving_groups import all_in_sync, moved, until
from tests.support.raw_groups import Coordinators

GONE = TopicPartition("gone", 0)

Scenario = Callable[[SimulatedCluster, Coordinators, Admin], Awaitable[None]]


def story(scenario: Scenario) -> None:
    async def tell(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await coordinators.find("g")
            await coordinators.describe("g")
            await until(lambda: all_in_sync(cluster))
            await scenario(cluster, coordinators, admin)

    in_cluster(tell, offsets_topic_num_partitions="1")


async def commit(coordinators: Coordinators, group_id: str, offset: int) -> None:
    items = [OffsetCommitPartition(*key, offset) for key in (GONE, ORDERS)]
    request = OffsetCommitRequest(group_id, partitions=items)
    answer = await coordinators.ask(await coordinators.find(group_id), request)
    assert [item.error_code for item in answer.partitions] == [0, 0]


async def created_again(admin: Admin, coordinators: Coordinators) -> None:
    """The topic exists again, and the group has no offset in it."""
    await admin.create_topic(GONE.topic, 1, 2)
    assert await coordinators.committed("g", GONE) == -1
    assert await coordinators.committed("g", ORDERS) == 5


def test_tombstones_that_are_refused_for_lack_of_replicas_are_written_later() -> None:
    async def scenario(cluster: SimulatedCluster, coordinators: Coordinators, admin: Admin) -> None:
        broker_id = await coordinators.find("g")
        await admin.create_topic(GONE.topic, assignments={0: [broker_id]})
        await commit(coordinators, "g", 5)
        others = [other for other in cluster.broker_ids if other != broker_id]
        for other in others:
            cluster.kill(other)
        await asyncio.sleep(60.0)  # the ISR is this broker alone
        await admin.delete_topics([GONE.topic])
        assert await coordinators.committed("g", GONE) == -1
        for other in others:
            cluster.start_broker(other)
        await until(lambda: all_in_sync(cluster))
        await asyncio.sleep(5.0)
        await created_again(admin, coordinators)
        await moved(cluster, coordinators, [])
        assert await coordinators.committed("g", GONE) == -1

    story(scenario)


def test_a_coordinator_that_dies_before_the_tombstones_are_written_leaves_them_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(cluster: SimulatedCluster, coordinators: Coordinators, admin: Admin) -> None:
        await admin.create_topic(GONE.topic, 1, 3)
        await until(lambda: all_in_sync(cluster))
        await commit(coordinators, "g", 5)
        with monkeypatch.context() as patched:
            patched.setattr(GroupLog, "write_tombstones", lambda *_: asyncio.Event().wait())
            await admin.delete_topics([GONE.topic])
        await moved(cluster, coordinators, [])
        await asyncio.sleep(5.0)
        await created_again(admin, coordinators)

    story(scenario)


def test_commits_for_the_next_topic_stay_while_another_group_still_loses_its_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The groups lost them one after the other, each after a write."""
    go_on = asyncio.Event()
    write_tombstones = GroupLog.write_tombstones

    async def slowly(log: GroupLog, group_id: str, *arguments: Any) -> Any:
        if group_id == "g":
            await go_on.wait()
        return await write_tombstones(log, group_id, *arguments)

    async def scenario(cluster: SimulatedCluster, coordinators: Coordinators, admin: Admin) -> None:
        await admin.create_topic(GONE.topic, 1, 3)
        for group_id in ("g", "h"):
            await commit(coordinators, group_id, 5)
        monkeypatch.setattr(GroupLog, "write_tombstones", slowly)
        await admin.delete_topics([GONE.topic])
        await admin.create_topic(GONE.topic, 1, 3)
        await commit(coordinators, "h", 7)
        go_on.set()
        async with asyncio.timeout(10):
            while await coordinators.committed("g", GONE) != -1:
                await asyncio.sleep(0.1)
        assert await coordinators.committed("h", GONE) == 7

    story(scenario)

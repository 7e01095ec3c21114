"""Groups and offsets that are removed stay removed when the coordinator moves."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    LeaveGroupRequest,
    MemberIdentity,
    OffsetDeletePartition,
    OffsetDeleteRequest,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.moving_groups import OTHER, SlowLog, events_of, group, moved, until
from tests.support.raw_groups import Coordinators


@pytest.mark.parametrize("move", [False, True])
def test_a_deleted_group_is_gone_with_its_offsets(move: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        leave = LeaveGroupRequest("g", [MemberIdentity(member.member_id, reason="done")])
        assert (await member.ask(leave)).members[0].error_code == ErrorCode.NONE
        assert (await coordinators.describe("g")).group_state == "Empty"
        assert (await member.ask(DeleteGroupsRequest(["g"]))).results[0].error_code == 0
        if move:
            await moved(cluster, coordinators, [member])
        assert (await coordinators.describe("g")).group_state == "Dead"
        assert await coordinators.committed("g", ORDERS) == -1
        assert EventKind.GROUP_GONE in [event.kind for event in cluster.events()]

    in_cluster(story)


@pytest.mark.parametrize("move", [False, True])
def test_deleted_offsets_are_gone_and_others_stay(move: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        for partition in (ORDERS, OTHER):
            assert await member.commit(partition, 5) is ErrorCode.NONE
        await member.ask(LeaveGroupRequest("g", [MemberIdentity(member.member_id)]))
        delete = OffsetDeleteRequest("g", [OffsetDeletePartition(*ORDERS)])
        assert (await member.ask(delete)).partitions[0].error_code == ErrorCode.NONE
        if move:
            await moved(cluster, coordinators, [member])
        found = await coordinators.fetch("g")
        assert [(item.partition, item.committed_offset) for item in found] == [(1, 5)]

    in_cluster(story)


@pytest.mark.parametrize("move", [False, True])
def test_the_offsets_of_a_deleted_topic_go_with_it(move: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("other", partitions=1, replication_factor=3)
            for key in (ORDERS, TopicPartition("other", 0)):
                assert await member.commit(key, 5) is ErrorCode.NONE
            await admin.delete_topics(["other"])
        await until(lambda: bool(events_of(cluster, EventKind.GROUP_OFFSETS_REMOVED)))
        await asyncio.sleep(1.0)
        if move:
            await moved(cluster, coordinators, [member])
        assert [item.topic for item in await coordinators.fetch("g")] == ["orders"]

    in_cluster(story)


def test_a_topic_that_is_deleted_while_a_coordinator_loads_takes_its_offsets_along() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        before, other = member.broker_id, TopicPartition("other", 0)
        slow = [SlowLog(cluster, b) for b in cluster.broker_ids if b != before]
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("other", partitions=1, replication_factor=3)
            for key in (ORDERS, other):
                assert await member.commit(key, 5) is ErrorCode.NONE
            cluster.kill(before)
            while (await coordinators.find("g")) == before:
                await asyncio.sleep(0.1)
            await admin.delete_topics(["other"])
        for log in slow:
            log.release()
        await until(lambda: bool(events_of(cluster, EventKind.GROUP_OFFSETS_REMOVED)))
        assert [item.topic for item in await coordinators.fetch("g")] == ["orders"]
        assert not any(log.groups._deleted_meanwhile for log in slow), "a new topic keeps its own"

    in_cluster(story)


def test_offsets_expire_after_the_group_is_empty_and_not_before() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        await asyncio.sleep(200.0)
        assert await coordinators.committed("g", ORDERS) == 5, "a member subscribes to it"
        await member.ask(LeaveGroupRequest("g", [MemberIdentity(member.member_id)]))
        await asyncio.sleep(50.0)
        assert await coordinators.committed("g", ORDERS) == 5
        await asyncio.sleep(30.0)
        assert await coordinators.committed("g", ORDERS) == -1
        await moved(cluster, coordinators, [member])
        assert (await coordinators.describe("g")).group_state == "Dead"

    in_cluster(story, offsets_retention_minutes="1", offsets_retention_check_interval_ms="5000")

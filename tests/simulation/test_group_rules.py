"""Rules of `docs/rules-groups.md` that no other test stands for, on a whole cluster."""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    LeaveGroupRequest,
    MemberIdentity,
    OffsetFetchGroup,
    OffsetFetchPartition,
    OffsetFetchRequest,
)
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster, members_of
from tests.support.moving_groups import group, moved
from tests.support.raw_groups import Coordinators, RawMember


def test_a_commit_is_a_sign_of_life() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=6_000)
        for offset in range(8):
            await asyncio.sleep(3.0)
            assert await member.commit(ORDERS, offset) is ErrorCode.NONE
        assert await member.heartbeat() is ErrorCode.NONE

    in_cluster(story)


def test_a_commit_before_the_assignment_is_refused() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await members_of(coordinators, 1)
        assert (await member.join()).error_code == ErrorCode.NONE
        assert await member.commit(ORDERS, 5) is ErrorCode.REBALANCE_IN_PROGRESS
        await member.sync({member.member_id: b""})
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE

    in_cluster(story)


def test_anyone_commits_for_a_group_without_members() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        stray = RawMember(coordinators, await coordinators.find("g"), "g")
        assert await stray.commit(ORDERS, 5) is ErrorCode.NONE
        assert await coordinators.committed("g", ORDERS) == 5
        await group(coordinators)
        assert await stray.commit(ORDERS, 6) is ErrorCode.UNKNOWN_MEMBER_ID

    in_cluster(story)


def test_several_members_leave_in_one_request() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        first, second = await group(coordinators, 2)
        names = [first.member_id, "stranger", second.member_id]
        response = await first.ask(LeaveGroupRequest("g", [MemberIdentity(n) for n in names]))
        assert [(m.member_id, m.error_code) for m in response.members] == [
            (first.member_id, ErrorCode.NONE),
            ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
            (second.member_id, ErrorCode.NONE),
        ]
        assert (await coordinators.describe("g")).group_state == "Empty"

    in_cluster(story)


def test_a_fetch_may_wait_for_the_commits_that_are_being_written() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE

        async def fetched(require_stable: bool) -> tuple[int, int]:
            asked = OffsetFetchGroup("g", [OffsetFetchPartition(*ORDERS)])
            answer = await member.ask(OffsetFetchRequest([asked], require_stable))
            (found,) = answer.groups[0].partitions
            return found.error_code, found.committed_offset

        others = [b for b in cluster.broker_ids if b != member.broker_id]
        for other in others:
            cluster.cut(member.broker_id, other)
        commit = asyncio.ensure_future(member.commit(ORDERS, 6))
        await asyncio.sleep(0.5)
        assert await fetched(False) == (ErrorCode.NONE, 5), "the new one is not committed yet"
        assert (await fetched(True))[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT
        for other in others:
            cluster.heal(member.broker_id, other)
        assert await commit is ErrorCode.NONE
        assert await fetched(True) == (ErrorCode.NONE, 6)

    in_cluster(story)


def test_members_that_died_with_their_coordinator_expire_at_the_next() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await group(coordinators, 2, session_timeout_ms=10_000)
        await moved(cluster, coordinators, members)
        described = await coordinators.describe("g")
        assert (described.group_state, len(described.members)) == ("Stable", 2)
        await asyncio.sleep(12.0)
        assert (await coordinators.describe("g")).group_state == "Empty"

    in_cluster(story)

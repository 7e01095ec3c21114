"""What a coordinator that takes over reads from the log, and what is answered meanwhile."""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    OffsetFetchGroup,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.builder import BatchBuilder
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.moving_groups import SlowLog, all_in_sync, events_of, group, moved, until
from tests.support.raw_groups import RANGE, Coordinators, RawMember


def test_no_acknowledged_commit_is_lost_while_coordinators_die_one_after_the_other() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await group(coordinators, session_timeout_ms=60_000)
        (member,) = members
        acknowledged = 0
        for number in range(10):
            commits = (
                member.commit(ORDERS, offset) for offset in range(10 * number, 10 * number + 10)
            )
            for offset, commit in enumerate(commits, 10 * number):
                assert await commit is ErrorCode.NONE
                acknowledged = offset
            dead = await moved(cluster, coordinators, members)
            assert await coordinators.committed("g", ORDERS) == acknowledged
            cluster.start_broker(dead)
            await cluster.serving()
            await until(lambda: all_in_sync(cluster))
        assert await member.heartbeat() is ErrorCode.NONE, "the membership is what was written"
        assert len(events_of(cluster, EventKind.COORDINATOR_LOADED)) > 10

    in_cluster(story)


def test_while_a_coordinator_loads_members_are_kept_and_others_wait() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        slow = [
            SlowLog(cluster, broker_id)
            for broker_id in cluster.broker_ids
            if broker_id != member.broker_id
        ]
        before = member.broker_id
        cluster.kill(before)
        while (after := await coordinators.find("g")) == before:
            await asyncio.sleep(0.1)
        member.broker_id = after
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await member.heartbeat() is ErrorCode.NONE
        assert (await member.sync()).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert (await member.join_once()).error_code == loading
        assert await member.commit(ORDERS, 6) is loading
        fetch = OffsetFetchRequest([OffsetFetchGroup("g", all_topics=True)])
        assert (await member.ask(fetch)).groups[0].error_code == loading
        assert (await member.ask(DescribeGroupsRequest(["g"]))).groups[0].error_code == loading
        assert (await member.ask(DeleteGroupsRequest(["g"]))).results[0].error_code == loading
        assert (await member.ask(ListGroupsRequest())).error_code == loading
        leave = LeaveGroupRequest("g", [MemberIdentity(member.member_id)])
        assert (await member.ask(leave)).error_code == loading
        for log in slow:
            log.release()
        assert await coordinators.committed("g", ORDERS) == 5
        assert await member.heartbeat() is ErrorCode.NONE

    in_cluster(story)


def test_a_load_that_a_newer_epoch_has_overtaken_is_dropped() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        slow = SlowLog(cluster, member.broker_id)
        groups = slow.groups
        partition = groups.partition_of(groups.all()[0])
        hosted = cluster.broker(member.broker_id).replica_manager.partitions.hosted(partition)
        epoch = hosted.leader_epoch
        # As if this broker had lost the partition and got it back, twice.
        groups.became_follower(partition, epoch - 5)
        groups.became_leader(partition, epoch - 4)
        await asyncio.sleep(1.0)
        groups.became_follower(partition, epoch - 3)
        groups.became_leader(partition, epoch)
        await asyncio.sleep(1.0)
        slow.read_under = epoch  # the late load finds a log that it can read
        slow.release(epoch - 4)
        await asyncio.sleep(5.0)
        assert groups.status("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert not groups.all()
        slow.release(epoch)
        await until(lambda: groups.status("g") is ErrorCode.NONE)
        assert [found.group_id for found in groups.all()] == ["g"]

    in_cluster(story)


def test_a_broker_that_leads_without_interruption_keeps_its_groups() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        groups = cluster.broker(member.broker_id).groups._groups
        (before,) = groups.all()
        partition = groups.partition_of(before)
        epoch = groups._owned[partition.partition]
        groups.became_leader(partition, epoch + 1)
        assert groups.is_here(before)
        groups.became_leader(partition, epoch + 3)
        assert not groups.is_here(before), "another leader may have written"
        groups.stopped(partition)
        assert groups.status("g") is ErrorCode.NOT_COORDINATOR

    in_cluster(story)


def test_a_coordinator_waits_until_what_it_has_read_is_committed() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        broker = cluster.broker(member.broker_id)
        groups = broker.groups._groups
        partition = groups.partition_of(groups.all()[0])
        hosted = broker.replica_manager.partitions.hosted(partition)
        others = [b for b in cluster.broker_ids if b != member.broker_id]
        for other in others:
            cluster.cut(member.broker_id, other)
        commit = asyncio.ensure_future(member.commit(ORDERS, 5))
        await asyncio.sleep(0.5)
        groups.became_follower(partition, hosted.leader_epoch)
        groups.became_leader(partition, hosted.leader_epoch)
        await asyncio.sleep(2.0)
        assert groups.status("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        for other in others:
            cluster.heal(member.broker_id, other)
        await until(lambda: groups.status("g") is ErrorCode.NONE)
        assert await coordinators.committed("g", ORDERS) == 5
        await commit

    in_cluster(story)


def test_without_enough_replicas_a_coordinator_serves_what_it_has_read() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        survivor = next(b for b in cluster.broker_ids if b != member.broker_id)
        for broker_id in cluster.broker_ids:
            if broker_id != survivor:
                cluster.kill(broker_id)
        await until(lambda: cluster.broker(survivor).groups._groups.status("g") is ErrorCode.NONE)
        assert await coordinators.committed("g", ORDERS) == 5
        member.broker_id = survivor
        assert await member.heartbeat() is ErrorCode.NONE

    in_cluster(story)


def test_no_assignment_is_answered_from_a_generation_that_may_still_be_lost() -> None:
    """A later coordinator without it would give its number to another generation."""

    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        survivor = next(b for b in cluster.broker_ids if b != member.broker_id)
        killed = [b for b in cluster.broker_ids if b != survivor]
        for broker_id in killed:
            cluster.kill(broker_id)
        groups = cluster.broker(survivor).groups._groups
        await until(lambda: groups.status("g") is ErrorCode.NONE)
        member.broker_id = survivor
        assert await member.heartbeat() is ErrorCode.NONE
        refused = await member.sync()
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        for broker_id in killed:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await until(lambda: all_in_sync(cluster))
        member.broker_id = await coordinators.find("g")
        await coordinators.describe("g")
        answered = await member.sync()
        assert (answered.error_code, answered.assignment) == (0, member.member_id.encode())

    in_cluster(story)


def test_a_group_that_is_loaded_over_its_size_limit_rebalances() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await group(coordinators, 2, session_timeout_ms=60_000)
        first = members[0].broker_id
        cluster._config["group.max.size"] = "1"
        for broker_id in cluster.broker_ids:
            if broker_id != first:
                cluster.kill(broker_id)
                cluster.start_broker(broker_id)
                await cluster.serving()
                await until(lambda: all_in_sync(cluster))
        await moved(cluster, coordinators, members)
        again = ErrorCode.REBALANCE_IN_PROGRESS
        assert [await member.heartbeat() for member in members] == [again, again]
        joining = asyncio.ensure_future(members[0].join_once())
        await asyncio.sleep(1.0)
        full = await members[1].join_once()
        assert full.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        joined = await joining
        assert (joined.error_code, len(joined.members)) == (ErrorCode.NONE, 1)

    in_cluster(story)


def test_requests_that_wait_are_answered_when_the_coordinator_stops() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await group(coordinators, 2)
        members[0].metadata = {**RANGE, "roundrobin": b""}
        joining = asyncio.ensure_future(members[0].join_once())
        await asyncio.sleep(1.0)
        assert not joining.done(), "the other has not joined again"
        begin = asyncio.get_running_loop().time()
        await cluster.stop_broker(members[0].broker_id)
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        assert asyncio.get_running_loop().time() - begin < 5

    in_cluster(story)


def test_a_record_that_cannot_be_read_harms_only_itself() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        broker = cluster.broker(member.broker_id)
        partition = broker.groups._groups.partition_of(broker.groups._groups.all()[0])
        builder = BatchBuilder()
        builder.append(1, b"\0\x02\0\x01g", b"\0\x63garbage")
        builder.append(1, b"\xff", b"garbage")
        request = ProduceRequest(-1, 5000, [ProducePartition(*partition, builder.build())])
        response = await broker.replica_manager.produces.produce(request, True)
        assert response is not None and not response.partitions[0].error_code
        await moved(cluster, coordinators, [member])
        assert await coordinators.committed("g", ORDERS) == 5
        assert await member.heartbeat() is ErrorCode.NONE
        assert len(events_of(cluster, EventKind.COORDINATOR_RECORD_UNREADABLE)) == 2

    in_cluster(story)


def test_too_few_replicas_refuse_commits_and_harm_nothing() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        others = [b for b in cluster.broker_ids if b != member.broker_id]
        for broker_id in others:
            cluster.kill(broker_id)
        assert await member.commit(ORDERS, 6) in (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.REQUEST_TIMED_OUT,
        )
        await asyncio.sleep(40.0)
        assert await member.commit(ORDERS, 7) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await member.heartbeat() is ErrorCode.NONE
        fetch = OffsetFetchRequest([OffsetFetchGroup("g", all_topics=True)])
        found = (await member.ask(fetch)).groups[0].partitions
        assert [item.committed_offset for item in found] == [5]
        for broker_id in others:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await until(lambda: all_in_sync(cluster))
        assert await member.commit(ORDERS, 8) is ErrorCode.NONE

    in_cluster(story)


def test_groups_are_listed_by_state_and_described_with_their_members() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, client_id="reader", group_instance_id="i-1")
        described = (await coordinators.describe("g")).members[0]
        assert (described.client_id, described.group_instance_id) == ("reader", "i-1")
        assert described.client_host.startswith("/")
        assert described.member_metadata == RANGE["range"]
        assert described.member_assignment == member.member_id.encode()

        async def listed(*states: str) -> list[str]:
            answers = [await coordinators.ask(b, ListGroupsRequest(list(states)))
                       for b in cluster.broker_ids]  # fmt: skip
            return [item.group_id for answer in answers for item in answer.groups]

        assert await listed() == ["g"] == await listed("stable", "dead")
        assert await listed("Empty") == []

    in_cluster(story)


def test_requests_of_members_that_the_new_coordinator_does_not_know() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        broker_id = await coordinators.find("nothing")
        for request, code in (
            (HeartbeatRequest("nothing", 1, "m"), ErrorCode.UNKNOWN_MEMBER_ID),
            (SyncGroupRequest("nothing", 1, "m"), ErrorCode.UNKNOWN_MEMBER_ID),
        ):
            assert (await coordinators.ask(broker_id, request)).error_code == code
        leave = LeaveGroupRequest("nothing", [MemberIdentity("m"), MemberIdentity("", "i")])
        answer = await coordinators.ask(broker_id, leave)
        assert answer.error_code == ErrorCode.NONE
        assert {m.error_code for m in answer.members} == {ErrorCode.UNKNOWN_MEMBER_ID}
        late = RawMember(coordinators, broker_id, "nothing", member_id="m")
        assert (await late.join_once()).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    in_cluster(story)

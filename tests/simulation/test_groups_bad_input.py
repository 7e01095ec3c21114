"""Requests that a coordinator must refuse: Kafka's error each, and the group unharmed."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from barnabas import Admin
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetFetchGroup,
    OffsetFetchPartition,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    NewPartitions,
    NewTopic,
)
from barnabas_common.runtime import Address, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster
from barnabas_simulator.loop import run

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.raw import batch
from tests.support.raw_groups import Coordinators, RawMember, settle

NOWHERE = TopicPartition("nowhere", 0)
OTHER = TopicPartition("orders", 1)


def neighbour(group_id: str) -> str:
    """Another group's id, of the same partition."""
    partition = partition_of_key(group_id, 4)
    return next(f"x{n}" for n in range(99) if partition_of_key(f"x{n}", 4) == partition)


@contextmanager
def refused(*codes: ErrorCode) -> Iterator[list[int]]:
    """The codes that are put into the list must be these."""
    found: list[int] = []
    yield found
    assert [ErrorCode(code) for code in found] == list(codes)


async def with_group(coordinators: Coordinators) -> list[RawMember]:
    broker_id = await coordinators.find("g")
    members = [RawMember(coordinators, broker_id, "g") for _ in range(2)]
    await settle(members)
    assert await members[0].commit(ORDERS, 3) is ErrorCode.NONE
    return members


async def unharmed(coordinators: Coordinators, members: list[RawMember]) -> None:
    assert [await member.heartbeat() for member in members] == [ErrorCode.NONE] * len(members)
    assert (await coordinators.describe("g")).group_state == "Stable"
    assert await coordinators.committed("g", ORDERS) == 3


def test_commits_that_are_refused() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await with_group(coordinators)
        member, unknown = members[0], neighbour("g")

        async def commit(*, metadata: str = "", key: TopicPartition = ORDERS, **changes) -> int:
            item = OffsetCommitPartition(*key, 99, committed_metadata=metadata)
            request = OffsetCommitRequest(
                "g", member.generation_id, member.member_id, partitions=[item]
            )
            for name, value in changes.items():
                setattr(request, name, value)
            response = await member.ask(request)
            return int(response.partitions[0].error_code)

        with refused(
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
            ErrorCode.ILLEGAL_GENERATION,
        ) as found:
            found.append(await commit(member_id="stranger"))
            found.append(await commit(generation_id=member.generation_id - 1))
            found.append(await commit(generation_id=-1, member_id=""))  # `assign` in a group
            found.append(await commit(group_instance_id="stranger"))
            found.append(await commit(key=NOWHERE))
            found.append(await commit(key=TopicPartition("orders", 77)))
            found.append(await commit(metadata="m" * 4097))
            found.append(await commit(group_id=unknown, generation_id=5))
        await unharmed(coordinators, members)
        assert await commit(metadata="m" * 4096) == ErrorCode.NONE

    in_cluster(story)


def test_one_partition_of_a_commit_fails_alone() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        (member, _other) = await with_group(coordinators)
        items = [
            OffsetCommitPartition(*NOWHERE, 1),
            OffsetCommitPartition(*ORDERS, 8),
            OffsetCommitPartition(*OTHER, 8, committed_metadata="m" * 5000),
        ]
        request = OffsetCommitRequest("g", member.generation_id, member.member_id, partitions=items)
        with refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NONE,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ) as found:
            found += [r.error_code for r in (await member.ask(request)).partitions]
        assert await coordinators.committed("g", ORDERS) == 8
        assert await coordinators.committed("g", OTHER) == -1

    in_cluster(story)


def test_an_empty_group_id_is_invalid_but_where_old_clients_used_it() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        empty = await coordinators.find("")
        range_ = [JoinGroupProtocol("range")]
        with refused(*[ErrorCode.INVALID_GROUP_ID] * 5) as found:
            for request in (
                JoinGroupRequest("", 10_000, 10_000, "", "", "consumer", range_),
                SyncGroupRequest("", 1, "m"),
                HeartbeatRequest("", 1, "m"),
                LeaveGroupRequest("", [MemberIdentity("m")]),
                OffsetDeleteRequest("", [OffsetDeletePartition(*ORDERS)]),
            ):
                found.append((await coordinators.ask(empty, request)).error_code)
        commit = OffsetCommitRequest("", partitions=[OffsetCommitPartition(*ORDERS, 4)])
        assert (await coordinators.ask(empty, commit)).partitions[0].error_code == ErrorCode.NONE
        assert await coordinators.committed("", ORDERS) == 4

    in_cluster(story)


def test_a_broker_that_does_not_coordinate_says_so() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await with_group(coordinators)
        other = next(b for b in cluster.broker_ids if b != members[0].broker_id)
        stray = RawMember(coordinators, other, "g", member_id=members[0].member_id)
        stray.generation_id = members[0].generation_id
        not_here = ErrorCode.NOT_COORDINATOR
        with refused(*[not_here] * 8) as found:
            found.append((await stray.join_once()).error_code)
            found.append((await stray.sync()).error_code)
            found.append(await stray.heartbeat())
            found.append(await stray.commit(ORDERS, 1))
            leave = LeaveGroupRequest("g", [MemberIdentity(stray.member_id)])
            found.append((await stray.ask(leave)).error_code)
            fetch = OffsetFetchRequest([OffsetFetchGroup("g", all_topics=True)])
            found.append((await stray.ask(fetch)).groups[0].error_code)
            found.append((await stray.ask(DescribeGroupsRequest(["g"]))).groups[0].error_code)
            found.append((await stray.ask(DeleteGroupsRequest(["g"]))).results[0].error_code)
        await unharmed(coordinators, members)

    in_cluster(story)


@pytest.mark.parametrize("timeout_ms", [0, -1, 5_999, 1_800_001])
def test_a_session_timeout_outside_the_brokers_limits_is_invalid(timeout_ms: int) -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        broker_id = await coordinators.find("g")
        member = RawMember(coordinators, broker_id, "g", session_timeout_ms=timeout_ms)
        assert (await member.join()).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert (await coordinators.describe("g")).group_state == "Dead"

    in_cluster(story)


def test_names_that_no_record_can_hold_are_refused_before_anything_changes() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await with_group(coordinators)
        broker_id, long = members[0].broker_id, "n" * 32_768
        with refused(
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_GROUP_ID,
            ErrorCode.INVALID_GROUP_ID,
        ) as found:
            for changes in ({"client_id": long}, {"group_instance_id": long},
                            {"metadata": {long: b""}}):  # fmt: skip
                member = RawMember(coordinators, broker_id, "g", **changes)  # type: ignore[arg-type]
                found.append((await member.join_once()).error_code)
            nameless = RawMember(coordinators, broker_id, long)
            found.append((await nameless.join_once()).error_code)
            found.append(await nameless.commit(ORDERS, 1))
        await unharmed(coordinators, members)

    in_cluster(story)


def test_what_administrators_ask_for_in_vain() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await with_group(coordinators)
        ask = members[0].ask

        async def delete_offsets(*keys: TopicPartition, group_id: str = "g") -> list[int]:
            items = [OffsetDeletePartition(*key) for key in keys]
            response = await ask(OffsetDeleteRequest(group_id, items))
            return [response.error_code, *(item.error_code for item in response.partitions)]

        with refused(
            ErrorCode.NON_EMPTY_GROUP,
            ErrorCode.NONE,
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ) as found:
            delete = DeleteGroupsRequest(["g"])
            found.append((await ask(delete)).results[0].error_code)
            found += await delete_offsets(ORDERS, NOWHERE)
        await unharmed(coordinators, members)
        alone = neighbour("g")
        with refused(ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND) as found:
            found.append((await ask(DeleteGroupsRequest([alone]))).results[0].error_code)
            found += await delete_offsets(ORDERS, group_id=alone)
        found_ = await members[0].coordinators.find_at(members[0].broker_id, "g")
        assert found_.node_id == members[0].broker_id

    in_cluster(story)


def test_an_offset_that_was_never_committed_is_minus_one() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        for group_id in ("g", "never-seen"):
            for found in await coordinators.fetch(group_id, ORDERS, NOWHERE):
                assert (found.committed_offset, found.error_code) == (-1, ErrorCode.NONE)
            assert await coordinators.fetch(group_id) == []

    in_cluster(story)


def test_no_client_writes_to_an_internal_topic_creates_it_or_lets_it_grow() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await with_group(coordinators)
        network = cluster.client_runtime("meddler").network
        address = Address(f"broker-{members[0].broker_id}", CLIENT_PORT)
        data, admin = (
            network.connect(address, Service.DATA),
            network.connect(address, Service.ADMIN),
        )
        with refused(*[ErrorCode.INVALID_TOPIC_EXCEPTION] * 8) as found:
            for partition in range(4):
                item = ProducePartition("__consumer_offsets", partition, batch(b"x"))
                response = await data.call(ProduceRequest(-1, 5000, [item]), 30.0)
                found.append(response.partitions[0].error_code)
            item = ProducePartition("__transaction_state", 0, batch(b"x"))
            response = await data.call(ProduceRequest(1, 5000, [item]), 30.0)
            found.append(response.partitions[0].error_code)
            for topic in ("__consumer_offsets", "__transaction_state"):
                create = CreateTopicsRequest(5000, topics=[NewTopic(topic, 1, 1)])
                found.append((await admin.call(create, 30.0)).topics[0].error_code)
            grow = CreatePartitionsRequest(5000, topics=[NewPartitions("__consumer_offsets", 9)])
            found.append((await admin.call(grow, 30.0)).topics[0].error_code)
        metadata = await admin.call(MetadataRequest(all_topics=True), 30.0)
        internal = {topic.topic: topic.is_internal for topic in metadata.topics}
        assert internal == {"orders": False, "__consumer_offsets": True}
        await unharmed(coordinators, members)

    in_cluster(story)


def test_with_fewer_brokers_than_replicas_the_offsets_topic_is_refused() -> None:
    async def scenario() -> None:
        cluster = SimulatedCluster(3, brokers=2)
        await cluster.start()
        coordinators = Coordinators(cluster)
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", partitions=1, replication_factor=2)
            for _ in range(3):
                found = await coordinators.find_at(1, "g")
                assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
                assert "REPLICATION_FACTOR" in found.error_message
            assert [t.topic for t in await admin.describe_topics()] == ["orders"]
        kinds = [event.kind for event in cluster.broker(1).events.since(0)]
        assert kinds.count(EventKind.OFFSETS_TOPIC_REFUSED) == 1, "said once"
        listed = await coordinators.ask(1, ListGroupsRequest())
        assert (listed.error_code, listed.groups) == (ErrorCode.NONE, [])
        await coordinators.close()

    run(scenario(), seed=3, max_time=300.0)


def test_offsets_of_a_whole_group_are_fetched_with_those_of_others() -> None:
    async def story(_: SimulatedCluster, coordinators: Coordinators) -> None:
        members = await with_group(coordinators)
        request = OffsetFetchRequest(
            [
                OffsetFetchGroup("g", all_topics=True),
                OffsetFetchGroup("g", [OffsetFetchPartition(*OTHER)]),
                OffsetFetchGroup("elsewhere", all_topics=True),
            ],
            require_stable=True,
        )
        groups = (await members[0].ask(request)).groups
        assert [item.committed_offset for item in groups[0].partitions] == [3]
        assert [item.committed_offset for item in groups[1].partitions] == [-1]
        assert groups[2].error_code in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)

    in_cluster(story)

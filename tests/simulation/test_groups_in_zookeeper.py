"""Offsets in ZooKeeper, as consumers of 0.8 kept them: any broker is the door to them."""

import asyncio

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    ZOOKEEPER_STORAGE,
    DeleteGroupsRequest,
    ListGroupsRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetFetchGroup,
    OffsetFetchPartition,
    OffsetFetchRequest,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.store import Store
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.raw_groups import Coordinators

LAST = TopicPartition("orders", 2)


def store_of(cluster: SimulatedCluster) -> Store:
    store = cluster.broker(1).membership.store
    assert store is not None
    return store


async def commit(
    coordinators: Coordinators, broker_id: int, key: TopicPartition, offset: int, **changes: str
) -> ErrorCode:
    item = OffsetCommitPartition(*key, offset, committed_metadata=changes.pop("metadata", ""))
    request = OffsetCommitRequest("g", partitions=[item], storage=ZOOKEEPER_STORAGE)
    for name, value in changes.items():
        setattr(request, name, value)
    response = await coordinators.ask(broker_id, request)
    return ErrorCode(response.partitions[0].error_code)


async def fetch(coordinators: Coordinators, broker_id: int, *keys: TopicPartition) -> list[int]:
    asked = OffsetFetchGroup("g", [OffsetFetchPartition(*key) for key in keys], not keys)
    request = OffsetFetchRequest([asked], storage=ZOOKEEPER_STORAGE)
    (group,) = (await coordinators.ask(broker_id, request)).groups
    assert not group.error_code
    return [item.committed_offset for item in group.partitions]


def test_every_broker_writes_and_reads_the_znodes_of_0_8() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        assert await commit(coordinators, 1, ORDERS, 5) is ErrorCode.NONE
        assert await commit(coordinators, 2, ORDERS, 7) is ErrorCode.NONE
        assert await commit(coordinators, 3, LAST, 9) is ErrorCode.NONE
        assert await fetch(coordinators, 2, ORDERS, TopicPartition("orders", 1), LAST) == [7, -1, 9]
        assert await fetch(coordinators, 3) == [7, 9]
        found = await store_of(cluster).get("/consumers/g/offsets/orders/0")
        assert found is not None and found[0] == b"7"
        assert await coordinators.find("g") and not await coordinators.fetch("g"), "apart"
        listed = await coordinators.ask(1, ListGroupsRequest(storage=ZOOKEEPER_STORAGE))
        assert [(group.group_id, group.group_state) for group in listed.groups] == [("g", "Empty")]
        stable = ListGroupsRequest(["Stable"], storage=ZOOKEEPER_STORAGE)
        assert not (await coordinators.ask(1, stable)).groups

    in_cluster(story)


def test_a_partition_that_is_named_twice_is_written_once() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        items = [OffsetCommitPartition(*ORDERS, offset) for offset in range(50)]
        request = OffsetCommitRequest("g", partitions=items, storage=ZOOKEEPER_STORAGE)
        response = await coordinators.ask(1, request)
        assert [item.error_code for item in response.partitions] == [ErrorCode.NONE] * 50
        found = await store_of(cluster).get("/consumers/g/offsets/orders/0")
        assert found is not None and (found[0], found[1].version) == (b"49", 0)

    in_cluster(story)


def test_offsets_that_cannot_be_stored_are_refused() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        nowhere = TopicPartition("nowhere", 0)
        assert await commit(coordinators, 1, nowhere, 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        too_long = "m" * 4097
        refused = await commit(coordinators, 1, ORDERS, 1, metadata=too_long)
        assert refused is ErrorCode.OFFSET_METADATA_TOO_LARGE
        for group_id in ("", "a/b", "..", ".", "g" * 1_100_000):
            refused = await commit(coordinators, 1, ORDERS, 1, group_id=group_id)
            assert refused is ErrorCode.INVALID_GROUP_ID
        unknown = await commit(coordinators, 1, ORDERS, 1, storage="memory")
        assert unknown is ErrorCode.INVALID_REQUEST
        assert await store_of(cluster).children("/consumers") == []
        assert await fetch(coordinators, 1, nowhere) == [-1]

    in_cluster(story)


def test_a_znode_without_a_number_counts_as_no_offset() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        store = store_of(cluster)
        await store.put("/consumers/g/offsets/orders/0", b"five")
        await store.put("/consumers/g/offsets/orders/x", b"5")
        assert await fetch(coordinators, 1, ORDERS) == [-1]
        assert await fetch(coordinators, 1) == []
        assert await commit(coordinators, 1, ORDERS, 5) is ErrorCode.NONE
        assert await fetch(coordinators, 1) == [5]

    in_cluster(story)


@pytest.mark.parametrize("has_members", [False, True])
def test_a_group_is_deleted_unless_consumers_of_0_8_are_in_it(has_members: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        await commit(coordinators, 1, ORDERS, 5)
        if has_members:
            await store_of(cluster).put("/consumers/g/ids/someone", b"")
        request = DeleteGroupsRequest(["g", "unknown"], storage=ZOOKEEPER_STORAGE)
        first, second = (await coordinators.ask(2, request)).results
        expected = ErrorCode.NON_EMPTY_GROUP if has_members else ErrorCode.NONE
        assert (first.error_code, second.error_code) == (expected, ErrorCode.GROUP_ID_NOT_FOUND)
        assert await fetch(coordinators, 3) == ([5] if has_members else [])

    in_cluster(story)


def test_a_broker_without_zookeeper_answers_in_time_and_another_stores_the_offset() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        cluster.part_from_zookeeper(1)
        begin = asyncio.get_running_loop().time()
        refused = await commit(coordinators, 1, ORDERS, 5)
        assert refused in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert asyncio.get_running_loop().time() - begin < 6
        assert await commit(coordinators, 2, ORDERS, 6) is ErrorCode.NONE
        cluster.reunite_with_zookeeper(1)
        while await commit(coordinators, 1, ORDERS, 7) is not ErrorCode.NONE:
            await asyncio.sleep(1.0)
        assert await fetch(coordinators, 3, ORDERS) == [7]

    in_cluster(story)

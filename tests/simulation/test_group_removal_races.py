"""Removals and commits of one group at the same time: what is told is what the log says."""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetDeletePartition,
    OffsetDeleteRequest,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.moving_groups import OTHER, all_in_sync, moved, until
from tests.support.raw_groups import Coordinators


def a_commit(offset: int, *partitions: TopicPartition) -> OffsetCommitRequest:
    items = [OffsetCommitPartition(*key, offset) for key in partitions or (ORDERS,)]
    return OffsetCommitRequest("g", partitions=items)


def a_removal(*partitions: TopicPartition) -> OffsetDeleteRequest:
    items = [OffsetDeletePartition(*key) for key in partitions or (ORDERS,)]
    return OffsetDeleteRequest("g", items)


async def same_after_a_move(cluster: SimulatedCluster, coordinators: Coordinators) -> int:
    """The committed offset, which must not change with the coordinator."""
    told = await coordinators.committed("g", ORDERS)
    await moved(cluster, coordinators, [])
    assert await coordinators.committed("g", ORDERS) == told
    return told


def test_an_offset_that_is_removed_while_it_is_written_stays_removed() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        broker_id = await coordinators.find("g")
        await coordinators.describe("g")
        offsets = cluster.broker(broker_id).groups.offsets
        assert (await offsets.commit(a_commit(1, OTHER))).partitions[0].error_code == 0
        commit = asyncio.ensure_future(offsets.commit(a_commit(5)))
        while not offsets._groups.get("g").committed.is_pending(ORDERS):  # type: ignore[union-attr]
            await asyncio.sleep(0)
        assert (await offsets.delete(a_removal())).partitions[0].error_code == 0
        assert (await commit).partitions[0].error_code == 0
        assert await same_after_a_move(cluster, coordinators) == -1

    in_cluster(story)


def test_a_commit_that_follows_a_removal_outlives_it() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        await coordinators.find("g")
        await coordinators.describe("g")
        for number in range(1, 21):
            broker_id = await coordinators.find("g")
            groups = cluster.broker(broker_id).groups
            await groups.offsets.commit(a_commit(number))
            if number % 2:
                removal = groups.admin.delete("g", "admin")
            else:
                removal = groups.offsets.delete(a_removal())
            _, committed = await asyncio.gather(
                removal, groups.offsets.commit(a_commit(100 + number))
            )
            assert committed.partitions[0].error_code == 0
            told = await coordinators.committed("g", ORDERS)
            log, key = groups._partition_log, groups._groups.partition_of
            group = groups._groups.get("g")
            assert group is None or await read_again(log, key(group), groups) == told

    in_cluster(story)


async def read_again(log, key, groups) -> int:  # type: ignore[no-untyped-def]
    """What a coordinator that takes over now would answer."""
    from barnabas_broker.coordinator.group.loading import LoadedGroups

    loaded = LoadedGroups()
    await log.load(key, groups._groups.leader_epoch(key), loaded.take_batch)
    found = [g.committed.offsets.get(ORDERS) for g in loaded.groups() if g.group_id == "g"]
    return found[0].value.offset if found and found[0] else -1


def test_a_removal_that_failed_can_be_repeated() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        broker_id = await coordinators.find("g")
        await coordinators.describe("g")
        await until(lambda: all_in_sync(cluster))
        committed = await coordinators.ask(broker_id, a_commit(5, ORDERS, OTHER))
        assert [item.error_code for item in committed.partitions] == [0, 0]
        others = [b for b in cluster.broker_ids if b != broker_id]
        for other in others:
            cluster.kill(other)
        await asyncio.sleep(60.0)  # the ISR is this broker alone
        refused = (await coordinators.ask(broker_id, a_removal())).partitions[0].error_code
        assert refused == ErrorCode.COORDINATOR_NOT_AVAILABLE
        deleted = await coordinators.ask(broker_id, DeleteGroupsRequest(["g"]))
        assert deleted.results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await coordinators.committed("g", ORDERS) == 5
        for other in others:
            cluster.start_broker(other)
        await until(lambda: all_in_sync(cluster))
        assert (await coordinators.ask(broker_id, a_removal())).partitions[0].error_code == 0
        assert await same_after_a_move(cluster, coordinators) == -1
        assert await coordinators.committed("g", OTHER) == 5

    in_cluster(story)


def test_a_group_without_members_goes_with_its_last_offset() -> None:
    """As in Kafka, and not only when offsets are next looked through for expired ones."""

    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        broker_id = await coordinators.find("g")
        await coordinators.describe("g")
        await coordinators.ask(broker_id, a_commit(5))
        assert (await coordinators.describe("g")).group_state == "Empty"
        assert (await coordinators.ask(broker_id, a_removal())).partitions[0].error_code == 0
        assert (await coordinators.describe("g")).group_state == "Dead"

    in_cluster(story)


def test_a_commit_of_nothing_that_exists_makes_no_group() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        broker_id = await coordinators.find("g")
        await coordinators.describe("g")
        answer = await coordinators.ask(broker_id, a_commit(5, TopicPartition("nowhere", 0)))
        assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not (await coordinators.ask(broker_id, OffsetCommitRequest("g"))).partitions
        assert (await coordinators.describe("g")).group_state == "Dead"

    in_cluster(story)

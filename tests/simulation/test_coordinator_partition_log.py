"""A coordinator's appends: which share a batch, and which are refused."""

import asyncio

import pytest
from barnabas_broker.coordinator.partition_log import KeyValue, PartitionLog
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.record.reader import Record
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import in_cluster
from tests.support.raw_groups import Coordinators


async def led(
    cluster: SimulatedCluster, coordinators: Coordinators
) -> tuple[PartitionLog, TopicPartition, int]:
    """The log of a broker that coordinates, a partition it leads, and the leader epoch."""
    broker_id = await coordinators.find("g")
    await coordinators.describe("g")
    groups = cluster.broker(broker_id).groups
    partition, epoch = next(iter(groups._groups._owned.items()))
    return groups._partition_log, TopicPartition("__consumer_offsets", partition), epoch


def one(number: int, size: int = 1) -> list[KeyValue]:
    return [KeyValue(b"key-%d" % number, b"v" * size)]


async def load(log: PartitionLog, key: TopicPartition, epoch: int) -> list[Record]:
    records: list[Record] = []
    await log.load(key, epoch, lambda _, batch: records.extend(batch))
    return records


def test_appends_at_the_same_time_share_batches_and_keep_their_order() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        log, key, epoch = await led(cluster, coordinators)
        batches = 0
        produce = log._produces.produce

        async def counted(*arguments, **options):
            nonlocal batches
            batches += 1
            return await produce(*arguments, **options)

        log._produces.produce = counted  # type: ignore[method-assign]
        written = await asyncio.gather(*(log.append(key, epoch, one(n)) for n in range(25)))
        assert batches == 1
        first = asyncio.ensure_future(log.append(key, epoch, one(25)))
        while batches == 1:
            await asyncio.sleep(0)
        others = await asyncio.gather(*(log.append(key, epoch, one(n)) for n in range(26, 50)))
        assert batches == 3, "the first alone, the others with the second"
        written += [await first, *others]
        assert [item.base_offset for item in written] == list(range(50))
        assert not any(item.error for item in written)
        records = await load(log, key, epoch)
        assert [record.key for record in records] == [b"key-%d" % n for n in range(50)]

    in_cluster(story)


@pytest.mark.parametrize("ticks", range(5))
def test_an_append_has_its_place_from_the_call_on(ticks: int) -> None:
    """Also if it is not awaited yet."""

    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        log, key, epoch = await led(cluster, coordinators)
        early = log.append(key, epoch, one(0))
        for _ in range(ticks):
            await asyncio.sleep(0)
        late = await log.append(key, epoch, one(1))
        assert (await early).base_offset < late.base_offset

    in_cluster(story)


@pytest.mark.parametrize("ticks", range(5))
def test_an_append_that_has_not_begun_fails_when_the_broker_stops(ticks: int) -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        log, key, epoch = await led(cluster, coordinators)
        append = log.append(key, epoch, one(0))
        for _ in range(ticks):
            await asyncio.sleep(0)
        await log.close()
        async with asyncio.timeout(1.0):
            assert (await append).error == ErrorCode.NOT_LEADER_OR_FOLLOWER

    in_cluster(story)


def test_one_append_that_is_too_large_fails_alone() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        log, key, epoch = await led(cluster, coordinators)
        sizes = [1, 1, 2_000_000, 1]
        written = await asyncio.gather(
            *(log.append(key, epoch, one(n, size)) for n, size in enumerate(sizes))
        )
        expected = [0, 0, ErrorCode.MESSAGE_TOO_LARGE, 0]
        assert [item.error for item in written] == expected
        assert len(await load(log, key, epoch)) == 3

    in_cluster(story)


def test_what_was_decided_under_another_epoch_is_not_written() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        log, key, epoch = await led(cluster, coordinators)
        written = await asyncio.gather(
            log.append(key, epoch, one(0)),
            log.append(key, epoch + 1, one(1)),
            log.append(key, epoch, one(2)),
        )
        refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [item.error for item in written] == [0, refused, 0]
        assert (await log.append(key, epoch + 1, one(3))).error == refused
        assert [record.key for record in await load(log, key, epoch)] == [b"key-0", b"key-2"]

    in_cluster(story)


def test_appends_in_progress_fail_when_the_broker_stops() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        log, key, epoch = await led(cluster, coordinators)
        broker_id = await coordinators.find("g")
        for other in cluster.broker_ids:
            if other != broker_id:
                cluster.pause(other)
        appends = [asyncio.ensure_future(log.append(key, epoch, one(n))) for n in range(3)]
        await asyncio.sleep(0.1)
        await log.close()
        written = await asyncio.gather(*appends)
        assert all(item.error for item in written)

    in_cluster(story)


def test_a_long_log_is_read_in_slices() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        log, key, epoch = await led(cluster, coordinators)
        for n in range(300):
            await log.append(key, epoch, one(n, 100))
        assert log._load_buffer_size == 1_000
        assert len(await load(log, key, epoch)) == 300

    in_cluster(story, offsets_load_buffer_size="1000", offsets_topic_segment_bytes="10000")

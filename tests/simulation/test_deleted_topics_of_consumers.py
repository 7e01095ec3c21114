"""Commits for topics that are gone, most often deleted after a consumer has read from them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from barnabas import Admin, Consumer, ConsumerRecord, Producer, ProducerRecord, exactly_once
from barnabas.errors import UnknownTopicOrPartitionError
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import send

KEPT, GONE = TopicPartition("kept", 0), TopicPartition("gone", 0)

Scenario = Callable[[SimulatedCluster, Admin], Awaitable[None]]


def story(scenario: Scenario) -> None:
    async def tell() -> None:
        cluster = SimulatedCluster(seed=4)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            for topic in (KEPT.topic, GONE.topic):
                await admin.create_topic(topic, partitions=1, replication_factor=3)
            await scenario(cluster, admin)

    run(tell(), seed=4, max_time=1800.0)


def reader(cluster: SimulatedCluster, **options: Any) -> Consumer:
    return Consumer(
        KEPT.topic,
        GONE.topic,
        group_id="g",
        auto_offset_reset="earliest",
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("consumer"),
        **options,
    )


async def read(consumer: Consumer, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for record in await consumer.poll()]
    return values


def test_a_member_reads_on_when_one_of_its_topics_is_deleted() -> None:
    """It committed the deleted topic's position for `max_poll_interval_ms` before it rejoined."""

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        async with reader(cluster) as consumer:
            for partition in (KEPT, GONE):
                await send(cluster, partition, [b"before"])
            assert await read(consumer, 2) == [b"before", b"before"]
            await admin.delete_topics([GONE.topic])
            await send(cluster, KEPT, [b"after"])
            async with asyncio.timeout(15):
                assert await read(consumer, 1) == [b"after"]
                while GONE in consumer.assignment():
                    await consumer.poll(timeout_ms=100)
            assert (await consumer.committed([KEPT]))[KEPT] is not None

    story(scenario)


def test_a_consumer_closes_at_once_when_one_of_its_topics_is_deleted() -> None:
    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        consumer = await reader(cluster).start()
        for partition in (KEPT, GONE):
            await send(cluster, partition, [b"before"])
        await read(consumer, 2)
        await admin.delete_topics([GONE.topic])
        async with asyncio.timeout(5):
            await consumer.close()

    story(scenario)


def test_a_commit_that_is_cancelled_does_not_hold_up_the_next() -> None:
    """As long as it is repeated, every later commit, and `close`, wait for it."""

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        async with reader(cluster, enable_auto_commit=False) as consumer:
            for partition in (KEPT, GONE):
                await send(cluster, partition, [b"before"])
            assert await read(consumer, 2) == [b"before", b"before"]
            await admin.delete_topics([GONE.topic])
            first = asyncio.create_task(consumer.commit())
            second = asyncio.create_task(consumer.commit({GONE: 1}))
            await asyncio.sleep(0.5)
            assert not first.done()
            first.cancel()
            second.cancel()
            async with asyncio.timeout(1):
                await consumer.commit({KEPT: 1})
            committed = (await consumer.committed([KEPT]))[KEPT]
            assert committed is not None
            assert committed.offset == 1

    story(scenario)


def test_a_commit_for_a_topic_that_does_not_exist_holds_up_no_other() -> None:
    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        runtime, loop = cluster.client_runtime("member"), asyncio.get_running_loop()
        async with Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            runtime=runtime,
            enable_auto_commit=False,
        ) as consumer:
            consumer.assign([KEPT])
            began = loop.time()
            refused = asyncio.ensure_future(consumer.commit({("missing", 0): 1}))
            await asyncio.sleep(0.1)
            await consumer.commit({KEPT: 1})
            with pytest.raises(UnknownTopicOrPartitionError, match="missing-0"):
                await refused
            assert loop.time() - began <= 5
            again = asyncio.ensure_future(consumer.commit({("missing", 0): 1}))
            consumer.commit_async({KEPT: 2})
            await asyncio.sleep(0.1)
        with suppress(UnknownTopicOrPartitionError):
            await again
        committed = await admin.list_group_offsets("g")
        assert committed[KEPT].offset == 2, "sent before the consumer was closed"

    story(scenario)


def test_an_exactly_once_loop_goes_on_when_one_of_its_topics_is_deleted() -> None:
    """It repeated the commit of offsets that the coordinator refuses, without end."""

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        await admin.create_topic("copies", partitions=1, replication_factor=3)
        seen: list[tuple[str, bytes | None]] = []

        async def transform(record: ConsumerRecord) -> list[ProducerRecord]:
            seen.append((record.topic, record.value))
            if len(seen) == 1:
                assert record.topic == GONE.topic
                await send(cluster, KEPT, [b"after"])
                await admin.delete_topics([GONE.topic])
            return [ProducerRecord("copies", record.value)]

        await send(cluster, GONE, [b"before"])
        exact: dict[str, Any] = {
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
        }
        async with (
            asyncio.timeout(30),
            reader(cluster, **exact) as consumer,
            Producer(
                cluster.bootstrap,
                transactional_id="copier",
                runtime=cluster.client_runtime("producer"),
            ) as producer,
        ):
            await exactly_once(consumer, producer, transform, idle_ms=10_000)
            assert seen == [(GONE.topic, b"before"), (KEPT.topic, b"after")]
            assert (await consumer.committed([KEPT]))[KEPT] is not None

    story(scenario)


def test_a_position_in_a_deleted_topic_is_not_committed_for_the_next_of_its_name() -> None:
    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        async with reader(cluster) as consumer:
            for partition in (KEPT, GONE):
                await send(cluster, partition, [b"before"])
            await read(consumer, 2)
            await admin.delete_topics([GONE.topic])
            assert await consumer.poll(timeout_ms=1_000) == []
            await admin.create_topic(GONE.topic, partitions=1, replication_factor=3)
            await send(cluster, GONE, [b"first", b"second"])
            assert await read(consumer, 2) == [b"first", b"second"]

    story(scenario)


@pytest.mark.parametrize("deleted", [True, False])
def test_a_topic_that_is_created_later_is_read_at_once(deleted: bool) -> None:
    """The leader of the group looked for it only as often as it refreshes metadata: 5 minutes."""

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        if not deleted:
            await admin.delete_topics([GONE.topic])
        async with reader(cluster) as consumer:
            await send(cluster, KEPT, [b"before"])
            assert await read(consumer, 1) == [b"before"]
            if deleted:
                await admin.delete_topics([GONE.topic])
            assert await consumer.poll(timeout_ms=30_000) == []
            assert consumer.assignment() == [KEPT]
            await admin.create_topic(GONE.topic, partitions=1, replication_factor=3)
            await send(cluster, GONE, [b"after"])
            async with asyncio.timeout(10):
                assert await read(consumer, 1) == [b"after"]

    story(scenario)

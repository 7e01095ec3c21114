"""Throttled reassignment: the rate on virtual time, and which replicas it holds back."""

import asyncio

import pytest
from barnabas import Producer
from barnabas.admin import ConfigResource
from barnabas.admin.reassignment_throttle import lift_if_done, reassign_throttled
from barnabas_common.errors import InvalidReplicaAssignmentError, UnknownTopicOrPartitionError
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.reassigning import TP, MovingPartition

MAX_SECONDS = 600.0
RATE = 500_000
LOADED = 4_000_000


async def loaded(seed: int) -> MovingPartition:
    """Return a partition with 4 MB on brokers 1 and 2; broker 3 is empty."""
    moving = MovingPartition(seed, [1, 2], brokers=3)
    await moving.start()
    async with moving.producing(pause=0.001, size=10_000):
        await moving.until(lambda: len(moving.history.sent) * 10_000 >= LOADED)
    return moving


async def throttle(moving: MovingPartition, side: str, rate: int | None) -> None:
    """Throttle the replicas of one side, "leader" or "follower"; None removes the throttle."""
    replicas = {"leader": "0:1,0:2", "follower": "0:2,0:3"}[side]
    rates = {f"{side}.replication.throttled.rate": None if rate is None else str(rate)}
    async with moving.admin() as admin:
        await admin.incremental_alter_configs(ConfigResource.all_brokers(), rates)
        await admin.incremental_alter_configs(
            ConfigResource.topic(TP.topic),
            {f"{side}.replication.throttled.replicas": None if rate is None else replicas},
        )
    await asyncio.sleep(0.5)


async def seconds_to_move(moving: MovingPartition) -> float:
    began = moving.cluster.clock.monotonic()
    await moving.reassign([3, 2])
    await moving.until(lambda: moving.is_home(3, 2), 120)
    return moving.cluster.clock.monotonic() - began


def test_without_a_throttle_it_takes_no_time() -> None:
    async def story() -> None:
        assert await seconds_to_move(await loaded(1)) < 1

    run(story(), seed=1, max_time=MAX_SECONDS)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_move_takes_as_long_as_its_rate_says(side: str) -> None:
    async def story() -> None:
        moving = await loaded(2)
        await throttle(moving, side, RATE)
        seconds = await seconds_to_move(moving)
        # One second's worth is free, and a fetch that finds the bucket empty waits 0.5 s at most.
        # An answer that exceeds the quota is not shortened: 1 MiB.
        assert LOADED / RATE - 3.2 <= seconds <= LOADED / RATE + 1.0, seconds
        await moving.assert_nothing_lost()

    run(story(), seed=2, max_time=MAX_SECONDS)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_who_is_in_sync_and_who_is_not_listed_is_not_held_back(side: str) -> None:
    """The added replica is slow, but acks=all is not.

    That holds for its own partition and for another one between the same brokers.
    """

    async def story() -> None:
        moving = await loaded(3)
        async with moving.admin() as admin:
            await admin.create_topic(
                "other", assignments={0: [1, 3]}, configs={"min.insync.replicas": "2"}
            )
        await throttle(moving, side, 1000)
        await moving.reassign([3, 2])
        clock, slowest = moving.cluster.clock, 0.0
        runtime = moving.cluster.client_runtime("probe")
        async with Producer(moving.cluster.bootstrap, runtime=runtime) as producer:
            await producer.send_and_wait("other", b"warm", partition=0)
            await producer.send_and_wait(TP.topic, b"warm", partition=0)
            for _ in range(20):
                for topic in (TP.topic, "other"):
                    began = clock.monotonic()
                    await producer.send_and_wait(topic, b"x" * 2000, partition=0)
                    slowest = max(slowest, clock.monotonic() - began)
                await asyncio.sleep(0.2)
        assert slowest < 0.1, slowest
        assert moving.assignment().adding == (3,), "the newcomer is still at it"
        await throttle(moving, side, None)  # without a throttle there is no wait
        await moving.until(lambda: moving.is_home(3, 2), 5)

    run(story(), seed=3, max_time=MAX_SECONDS)


async def throttles(moving: MovingPartition) -> list[str]:
    """The throttles that are set for the topic or for all brokers."""
    async with moving.admin() as admin:
        of_topic = await admin.describe_configs(TP.topic)
        of_all = await admin.describe_cluster_default_configs()
    described = [each for each in of_topic if each.source == "topic"] + of_all
    return sorted(each.name for each in described if "throttled" in each.name)


def test_moves_that_are_refused_leave_no_throttle() -> None:
    async def story() -> None:
        moving = MovingPartition(4, [1, 2], brokers=3)
        await moving.start()
        async with moving.admin() as admin:
            with pytest.raises(InvalidReplicaAssignmentError):
                await reassign_throttled(admin, {TP: [2, 9]}, RATE)
        assert await throttles(moving) == []

    run(story(), seed=4, max_time=MAX_SECONDS)


def test_a_refusal_leaves_the_throttle_of_a_move_in_progress() -> None:
    async def story() -> None:
        moving = await loaded(5)
        async with moving.admin() as admin:
            await reassign_throttled(admin, {TP: [3, 2]}, 1000)
            with pytest.raises(UnknownTopicOrPartitionError):
                await reassign_throttled(admin, {TopicPartition("flights", 7): [1, 2]}, 1000)
            assert len(await throttles(moving)) == 4
            await admin.alter_partition_reassignments({TP: None})
            assert await lift_if_done(admin) == [TP.topic]
        assert await throttles(moving) == []

    run(story(), seed=5, max_time=MAX_SECONDS)

"""Partitions move while records flow; whichever process dies, nothing acknowledged is lost."""

import asyncio

import pytest
from barnabas_simulator.loop import run

from tests.support.reassigning import TP, MovingPartition

MAX_SECONDS = 600.0


def test_all_replicas_move_and_the_old_logs_are_deleted() -> None:
    async def story() -> None:
        moving = MovingPartition(1, [1, 2, 3], brokers=6)
        await moving.start()
        async with moving.producing():
            await asyncio.sleep(1)
            await moving.reassign([4, 5, 6])
            await moving.until(lambda: moving.is_home(4, 5, 6))
            await asyncio.sleep(1)
        assert [b for b in moving.cluster.running_brokers if moving.hosts(b)] == [4, 5, 6]
        for broker_id in (1, 2, 3):
            assert not moving.cluster.disks[broker_id].exists("/data/flights-0")
        async with moving.admin() as admin:
            assert await admin.list_partition_reassignments() == {}
            (partition,) = (await admin.describe_topic(TP.topic)).partitions
            assert partition.replicas == [4, 5, 6]
        await moving.assert_nothing_lost()
        assert len(moving.history.acked) == len(moving.history.sent) > 80

    run(story(), seed=1, max_time=MAX_SECONDS)


async def move_under_fire(seed: int, target: list[int], dies_after: int) -> int:
    """Move a partition; the controller dies right after its n-th write about it, and restarts.

    Returns the number of writes.
    """
    moving = MovingPartition(seed, [1, 2, 3])
    await moving.start()
    async with moving.producing():
        await asyncio.sleep(0.3)
        with moving.controller_dies_after(dies_after) as writes:
            await moving.insist(target)
            await moving.until(lambda: moving.is_home(*target))
        await asyncio.sleep(0.5)
    await moving.cluster.serving()
    await moving.assert_nothing_lost()
    return len(writes)


@pytest.mark.parametrize("target", [[4, 5, 3], [5, 4], [2, 1]], ids=str)
def test_the_controller_dies_after_each_of_its_writes(target: list[int]) -> None:
    writes = run(move_under_fire(0, target, 0), seed=0, max_time=MAX_SECONDS)
    assert writes >= 3, "the way, the lead and the ISR, the end; and each newcomer in the ISR"
    for dies_after in range(1, writes + 1):
        happened = run(
            move_under_fire(dies_after, target, dies_after), seed=dies_after, max_time=MAX_SECONDS
        )
        assert happened >= dies_after


async def cancel_under_fire(seed: int, dies_after: int) -> int:
    """Cancel a move, likewise, when the first added replica is in sync and the second is dead."""
    moving = MovingPartition(seed, [1, 2, 3])
    await moving.start()
    async with moving.producing():
        await moving.reassign([4, 5])
        moving.cluster.kill(5)
        await moving.until(lambda: 4 in moving.state().isr)
        with moving.controller_dies_after(dies_after) as writes:
            await moving.insist(None)
            await moving.until(lambda: moving.is_home(1, 2, 3))
        await asyncio.sleep(0.5)
    await moving.cluster.serving()
    # If the controller dies after the second write, broker 4 never gets its StopReplica, as in
    # Kafka.
    assert not moving.hosts(4) or dies_after == 2
    await moving.until(lambda: not moving.hosts(4))  # it detects that it is a stray
    await moving.assert_nothing_lost()
    return len(writes)


def test_a_cancel_midway_survives_the_controllers_death_after_each_write() -> None:
    writes = run(cancel_under_fire(0, 0), seed=0, max_time=MAX_SECONDS)
    assert writes == 2, "the ISR without the newcomers, the topic's znode"
    for dies_after in (1, 2):
        assert run(cancel_under_fire(dies_after, dies_after), seed=dies_after, max_time=MAX_SECONDS)


@pytest.mark.parametrize("keep_unflushed", [True, False], ids=["killed", "power-loss"])
def test_a_target_that_dies_and_comes_back_catches_up_and_it_goes_on(keep_unflushed: bool) -> None:
    async def story() -> None:
        moving = MovingPartition(3, [1, 2])
        await moving.start()
        async with moving.producing():
            await asyncio.sleep(0.5)
            await moving.reassign([4, 5])
            moving.cluster.kill(5, keep_unflushed=keep_unflushed)
            await asyncio.sleep(8)
            assert moving.assignment().adding == (4, 5), "it waits"
            moving.cluster.start_broker(5)
            await moving.until(lambda: moving.is_home(4, 5))
        await moving.assert_nothing_lost()

    run(story(), seed=3, max_time=MAX_SECONDS)


def test_the_old_leader_dies_on_the_way() -> None:
    async def story() -> None:
        moving = MovingPartition(4, [1, 2, 3])
        await moving.start()
        async with moving.producing():
            await asyncio.sleep(0.5)
            await moving.reassign([4, 5, 3])
            moving.cluster.kill(moving.state().leader)
            await moving.until(lambda: moving.is_home(4, 5, 3))
        await moving.assert_nothing_lost()

    run(story(), seed=4, max_time=MAX_SECONDS)


def test_a_replica_that_left_and_comes_again_starts_from_nothing() -> None:
    """The leader drops the offsets of the earlier replica: the new one must fetch to be in sync."""

    async def story() -> None:
        moving = MovingPartition(5, [1, 2, 3])
        await moving.start()
        async with moving.producing():
            for target in ([1, 2], [1, 2, 3], [2, 3], [3, 1, 2]):
                await asyncio.sleep(0.3)
                await moving.reassign(target)
                await moving.until(lambda target=target: moving.is_home(*target))
        await moving.assert_nothing_lost()

    run(story(), seed=5, max_time=MAX_SECONDS)

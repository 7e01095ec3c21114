"""The three ways to be outside the ISR, each recognized by its cause: stuck, slow, and new.

A burst that is fetched at once is none of them: see `test_replication_isr.py`.
"""

import asyncio

import pytest
from barnabas_simulator.loop import run

from tests.support.replication_world import TP, ReplicationWorld, State

LAG = 2.0
# A fetch returns one batch, so that a follower behind a slow link cannot keep up.
CONFIG = {"replica.lag.time.max.ms": "2000", "replica.fetch.max.bytes": "1"}


async def _three() -> ReplicationWorld:
    world = ReplicationWorld(config=CONFIG)
    await world.start(1, 2, 3)
    await world.create(1, 2, 3)
    await world.produce(b"a")
    await world.until_equal(1, 2, 3)
    return world


async def _produce_until(world: ReplicationWorld, isr: tuple[int, ...]) -> float:
    """Append every 20 ms until the ISR has these members; returns the seconds it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while world.isr() != isr:
        await world.produce(b"more", acks=1)
        await asyncio.sleep(0.02)
        assert loop.time() - began < 10 * LAG, "it stays in"
    return loop.time() - began


def _slow_down(world: ReplicationWorld, broker_id: int, seconds: float) -> None:
    """Slow down the link to broker 1, both ways."""
    one, other = world.incarnations[1].name, world.incarnations[broker_id].name
    world.network.links.delay((one, other), seconds)
    world.network.links.delay((other, one), seconds)


def test_a_stuck_follower_fetches_no_more() -> None:
    async def scenario() -> None:
        world = await _three()
        world.cut(1, 3)
        passed = await _produce_until(world, (1, 2))
        assert LAG - 0.6 <= passed <= 1.5 * LAG + 0.5
        (alteration,) = world.alterations
        assert "and has not fetched for" in alteration.partitions[0].cause

    run(scenario())


def test_a_slow_follower_fetches_all_the_time_and_never_catches_up() -> None:
    async def scenario() -> None:
        world = await _three()
        _slow_down(world, 3, 0.2)
        before = len(world.incarnations[1].requests)
        passed = await _produce_until(world, (1, 2))
        assert LAG - 0.6 <= passed <= 1.5 * LAG + 0.5
        fetches = [r for r in world.incarnations[1].requests[before:] if r.replica_id == 3]
        assert len(fetches) > 5, "it did fetch meanwhile"
        (alteration,) = world.alterations
        assert "it fetches, but is" in alteration.partitions[0].cause

    run(scenario())


@pytest.mark.parametrize("delay", [0.0, 0.2])
def test_a_new_follower_is_outside_until_it_has_what_is_committed(delay: float) -> None:
    """It was added as by a reassignment: its log is empty, and there are many old records."""

    async def scenario() -> None:
        world = ReplicationWorld(config=CONFIG)
        await world.start(1, 2, 3)
        await world.create(1, 2)
        for number in range(20):
            await world.produce(b"%d" % number)
        world.states[TP] = State((1, 2, 3), 1, (1, 2), leader_epoch=1, partition_epoch=1)
        _slow_down(world, 3, delay)
        await world.announce()
        joined_with: list[int] = []
        while world.isr() != (1, 2, 3):
            await world.until(lambda: True)
            joined_with.append(world.log(3).log_end_offset)
            assert world.log(1).high_watermark == 20, "nobody waits for it"
            await asyncio.sleep(0.001)
        assert joined_with[0] < 20 and joined_with[-1] == 20
        assert "has caught up to offset 20" in world.alterations[0].partitions[0].cause

    run(scenario())


def test_a_member_that_never_fetched_at_all_leaves_after_its_time() -> None:
    """It is in the ISR from the topic's creation on, but its broker was never notified."""

    async def scenario() -> None:
        world = ReplicationWorld(config=CONFIG)
        await world.start(1, 2, 3)
        world.states[TP] = State((1, 2, 3), 1, (1, 2, 3))
        await world.announce(is_new=True, but=3)
        await _produce_until(world, (1, 2))
        cause = world.alterations[0].partitions[0].cause
        assert (
            cause == "broker 3 has never fetched from this leader, replica.lag.time.max.ms is 2 s"
        )

    run(scenario())

"""When the high watermark and the log start move, on the leader and on its followers."""

import asyncio

from barnabas_simulator.loop import run

from tests.support.replication_world import ReplicationWorld

MAX_LAG = 30.0


async def three() -> ReplicationWorld:
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    await world.create(1, 2, 3)
    await world.produce(b"a")
    await world.until_equal(1, 2, 3)
    return world


def test_a_followers_high_watermark_falls_to_that_of_a_new_leader() -> None:
    """The new leader has lost its high watermark, and cannot commit without broker 1."""

    async def scenario() -> None:
        world = await three()
        world.kill(3)
        world.kill(1)
        await world.start(3)
        await world.elect(3)
        assert world.log(2).log_end_offset == 1
        await world.until(lambda: world.log(2).high_watermark == 0, timeout=5.0)
        assert world.log(3).high_watermark == 0

    run(scenario())


def test_a_followers_log_start_follows_its_leaders() -> None:
    async def scenario() -> None:
        world = await three()
        world.log(1).maybe_increment_log_start_offset(1)
        await world.produce(b"b")
        await world.until(lambda: world.log(2).log_start_offset == 1, timeout=5.0)
        assert world.log(2).log_end_offset == 2

    run(scenario())


def test_an_empty_follower_takes_the_whole_batch_in_which_its_leader_starts() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1)
        await world.create(1, 2)
        await world.elect(1, isr=(1,))
        await world.produce(b"a", b"b", b"c")
        world.log(1).maybe_increment_log_start_offset(1)
        await world.start(2)
        await world.announce(only=2)
        await world.until(lambda: world.log(2).log_end_offset == 3, timeout=10.0)
        assert world.log(2).segment_offsets == [0]
        assert world.log(2).log_start_offset == 1

    run(scenario())


def test_a_committed_change_of_the_isr_moves_it_at_once() -> None:
    async def scenario() -> None:
        world = await three()
        world.cut(1, 3)
        produce = asyncio.ensure_future(world.produce(b"b", timeout_ms=120_000))
        await world.until(lambda: world.isr() == (1, 2), timeout=2 * MAX_LAG)
        await asyncio.sleep(0.1)
        assert produce.done() and world.log(1).high_watermark == 2

    run(scenario())


def test_becoming_leader_again_moves_it_at_once() -> None:
    """The remaining members have everything, and the leader knows it."""

    async def scenario() -> None:
        world = await three()
        world.cut(1, 3)
        await world.produce(b"b", acks=1)
        await world.until(lambda: world.partition(1).lead().followers[2].log_end_offset == 2)
        assert world.log(1).high_watermark == 1
        await world.elect(1, isr=(1, 2))
        assert world.log(1).high_watermark == 2

    run(scenario())


def test_a_leader_that_missed_an_epoch_knows_no_offsets() -> None:
    """Its followers may have truncated their logs to another leader's since."""

    async def scenario() -> None:
        world = await three()
        await world.elect(2, but=1)
        for follower in (2, 3):
            world.cut(1, follower)
        await world.elect(1)
        followers = world.partition(1).lead().followers
        assert [followers[follower].log_end_offset for follower in (2, 3)] == [-1, -1]

    run(scenario())

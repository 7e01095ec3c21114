"""Known failures of replication, each as the shortest schedule that shows it.

They are played on a `ReplicationWorld`, whose controller does what the schedule says.
"""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_simulator.invariants import FaultBudget

from tests.support.replication_world import TP, ReplicationWorld
from tests.support.watched_world import watched

CHECKPOINT_SECONDS = 6.0  # by then the high watermarks are checkpointed
GATED = {"min.insync.replicas": "2"}


async def _elect(world: ReplicationWorld, leader: int, isr: tuple[int, ...], *told: int) -> None:
    """Start a new leader epoch, and announce it to the brokers `told` only."""
    state = world.states[TP]
    state.leader, state.isr = leader, isr
    state.leader_epoch += 1
    state.partition_epoch += 1
    for broker_id in told:
        await world.announce(only=broker_id)


async def _commit(world: ReplicationWorld, *values: bytes) -> None:
    assert (await world.produce(*values)).error_code == ErrorCode.NONE


async def kip_101a() -> None:
    """The follower has m2, but does not know that it is committed; it restarts, the leader dies."""
    world = ReplicationWorld()
    await world.start(1, 2)
    checker = watched(world)
    await world.create(2, 1)
    await world.produce(b"m1")
    await world.until_equal(1, 2)
    await _commit(world, b"m2")
    checker.acked(TP, 1, b"m2")
    world.kill(1)
    await world.start(1)
    world.cut(1, 2)
    await world.announce(only=1)
    await asyncio.sleep(0.1)
    world.kill(2)
    await world.elect(1, isr=(1,))
    await _commit(world, b"m3")
    await world.start(2)
    await world.announce(only=2)
    await checker.at_rest()


async def kip_101b() -> None:
    """Both crash; the replica with the shorter log leads, and writes m3 where the other has m2."""
    world = ReplicationWorld()
    await world.start(1, 2)
    checker = watched(world, FaultBudget(unsynced_leader=True))
    await world.create(1, 2)
    await world.produce(b"m1")
    await world.until_equal(1, 2)
    world.log(2).flush()
    await world.produce(b"m2")
    await world.until_equal(1, 2)
    await asyncio.sleep(CHECKPOINT_SECONDS)
    world.kill(1)
    world.kill(2, keep_unflushed=False)
    await world.start(2)
    await world.elect(2, isr=(2,))
    assert world.values(2) == [b"m1"], "the story needs the power cut to take m2"
    await world.produce(b"m3")
    await world.start(1)
    await world.announce(only=1)
    await checker.at_rest()


async def kip_279() -> None:
    """Two leaders in a row reach no other broker; a follower asks for an epoch the third never had.

    Broker 1 {0: 0-9, 2: 10-19} follows broker 2 {0: 0-9, 1: 10-14}.
    """
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    await _commit(world, *[b"common-%d" % number for number in range(10)])
    await world.until_equal(1, 2, 3)
    for pair in ((1, 2), (1, 3), (2, 3)):
        world.cut(*pair)
    await _elect(world, 2, (1, 2, 3), 2)
    for number in range(5):
        await world.produce(b"b-%d" % number, acks=1)
    await _elect(world, 1, (1, 2, 3), 1)
    for number in range(10):
        await world.produce(b"a-%d" % number, acks=1)
    await _elect(world, 2, (1, 2, 3), 2, 1, 3)
    for pair in ((1, 2), (1, 3), (2, 3)):
        world.heal(*pair)
    await checker.at_rest()


async def kip_320a() -> None:
    """A deposed leader and a follower that does not know of the election continue together.

    Their records are never committed, and both truncate them when they learn of the election.
    """
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    await _commit(world, b"a")
    await world.until_equal(1, 2, 3)
    await _elect(world, 2, (1, 2, 3), 2)
    await world.produce(b"stale", to=1, acks=1)
    await world.until(lambda: world.values(3) == [b"a", b"stale"])
    await asyncio.sleep(1.0)
    assert world.log(1).high_watermark == 1
    await world.announce(only=1)
    await world.announce(only=3)
    await _commit(world, b"b")
    assert world.values(2) == [b"a", b"b"]
    await checker.at_rest()


async def kip_320b() -> None:
    """Broker 3 missed two elections, and its fetch counts for a leader that it does not know.

    Then the LeaderAndIsr of the first election arrives, and it truncates its log to that leader's.
    """
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    await _commit(world, b"a")
    await world.until_equal(1, 2, 3)
    await _elect(world, 2, (1, 2, 3), 2)
    late = world.leader_and_isr()
    await _elect(world, 1, (1, 3), 1)
    producing = asyncio.create_task(world.produce(b"b"))
    await asyncio.sleep(1.0)
    await world.on(3, world.incarnations[3].manager.become_leader_or_follower(late))
    await asyncio.sleep(1.0)
    await world.announce(only=3)
    await world.announce(only=2)
    await producing
    await checker.at_rest()


async def leso_join() -> None:
    """A new leader's high watermark is too low, and a replica that reaches it lacks a record.

    The record was committed under the previous leader.
    """
    world = ReplicationWorld(topic=GATED)
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    await _commit(world, b"a")
    await world.until_equal(1, 2, 3)
    world.kill(3)
    await world.elect(1, isr=(1, 2))
    await _commit(world, b"b")
    assert world.log(2).high_watermark == 1
    world.kill(1)
    await world.start(3)
    world.network.links.delay(("broker-2", "broker-3"), 5.0)  # b stays in flight for long
    await _elect(world, 2, (2,), 2)
    await asyncio.sleep(1.0)
    await world.announce(only=3)
    await world.until(lambda: world.isr() == (2, 3))
    world.network.links.delay(("broker-2", "broker-3"), 0.0)
    await world.start(1)
    await world.announce(only=1)
    await checker.at_rest()


async def re_add_race() -> None:
    """A replica is removed and added again, empty; its leader remembers the removed one."""
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    await _commit(world, b"a", b"b")
    await world.until_equal(1, 2, 3)
    await asyncio.sleep(1.0)
    world.states[TP].replicas = (1, 2)
    await world.elect(1, isr=(1, 2))
    assert await world.stop_replica(3, delete=True) == ErrorCode.NONE
    # nothing reaches the new replica for a while
    world.network.links.delay(("broker-1", "broker-3"), 5.0)
    world.states[TP].replicas = (1, 2, 3)
    await world.elect(1, isr=(1, 2))
    await world.until(lambda: world.isr() == (1, 2, 3))
    await checker.at_rest()


async def pending_isr() -> None:
    """The ISR has grown in ZooKeeper, and the leader does not know it yet."""
    world = ReplicationWorld()
    await world.start(1, 2)
    checker = watched(world)
    await world.create(1, 2)
    await _commit(world, b"a")
    world.kill(2)
    await world.elect(1, isr=(1,))
    await _commit(world, b"b")
    await world.start(2)
    await world.announce(only=2)
    await checker.at_rest()


async def deposed_leader() -> None:
    """A deposed leader truncates the records that no follower fetched, and their epoch."""
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    await _commit(world, b"a")
    await world.until_equal(1, 2, 3)
    world.cut(1, 2)
    world.cut(1, 3)
    await _elect(world, 1, (1, 2, 3), 1)
    await world.produce(b"nobody-1", b"nobody-2", acks=1)
    await _elect(world, 1, (1, 2, 3), 1)
    await world.elect(2, isr=(2, 3))
    world.heal(1, 2)
    world.heal(1, 3)
    await _commit(world, b"b")
    await checker.at_rest()

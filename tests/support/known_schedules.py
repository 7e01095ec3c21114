"""The classic failures of Kafka's replication, each as the shortest schedule that shows it.

Every story is told to the end and held to the invariants all the way: with the code as it is none
trips, with the matching bug of `seeded_bugs` one of those named does. The replication stories are
played on a `ReplicationWorld`, whose controller does what the story says; the others on a whole
`SimulatedCluster`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from barnabas import Admin
from barnabas_common.errors import BarnabasError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_controller.store import znodes
from barnabas_controller.zookeeper.session import EventType, WatchEvent
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import FaultBudget, Invariants
from barnabas_simulator.loop import run

from tests.support.delivery import History
from tests.support.last_replica import Stage, numbers
from tests.support.replication_world import TP, ReplicationWorld
from tests.support.watched_world import watched
from tests.support.whole_cluster import produce as produce_numbers

MAX_SECONDS = 600.0
CHECKPOINT_SECONDS = 6.0  # the high watermarks are on the disk by then
GATED = {"min.insync.replicas": "2"}


@dataclass(frozen=True)
class KnownSchedule:
    """`bug` is the seeded one it must find, by one of `invariants`; None: more than one rule stands
    against it, so no single bug re-opens it."""

    name: str
    story: Callable[[], Awaitable[None]]
    bug: str | None = None
    invariants: tuple[str, ...] = ()

    def run(self) -> None:
        """Tell the story; raises InvariantViolation."""

        async def told() -> None:
            await self.story()

        run(told(), seed=1, max_time=MAX_SECONDS)


# ---- replication


async def _elect(world: ReplicationWorld, leader: int, isr: tuple[int, ...], *told: int) -> None:
    """A new leader epoch, of which only these brokers hear."""
    state = world.states[TP]
    state.leader, state.isr = leader, isr
    state.leader_epoch += 1
    state.partition_epoch += 1
    for broker_id in told:
        await world.announce(only=broker_id)


async def _commit(world: ReplicationWorld, *values: bytes) -> None:
    assert (await world.produce(*values)).error_code == ErrorCode.NONE


async def kip_101a() -> None:
    """F has m2, which is committed, but not yet the news of it; F restarts, the leader dies."""
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
    """Both crash; the one with the shorter log leads and writes m3 where the other has m2."""
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
    """Two leaders in a row whom nobody hears; the follower asks for an epoch the third never had.

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
    """A deposed leader and a follower that has not heard of it go on together: nothing of that is
    ever committed, and it goes when they hear."""
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
    """Broker 3 missed two elections, and its fetch counts for a leader it does not know; then the
    order of the first of them arrives, and it cuts its log to that leader's."""
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
    """A new leader's high watermark is behind the true one; a replica that reaches it lacks a
    committed record."""
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
    world.network.links.delay(("broker-2", "broker-3"), 5.0)  # b is long on its way
    await _elect(world, 2, (2,), 2)
    await asyncio.sleep(1.0)
    await world.announce(only=3)
    await world.until(lambda: world.isr() == (2, 3))
    world.network.links.delay(("broker-2", "broker-3"), 0.0)
    await world.start(1)
    await world.announce(only=1)
    await checker.at_rest()


async def re_add_race() -> None:
    """A replica is taken off a broker and put back, empty; its leader remembers the one before."""
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
    """The ISR has grown in ZooKeeper, and the leader has yet to hear of it."""
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
    """A leader that nobody followed any more cuts what it wrote in its epoch, and the epoch."""
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


# ---- whole clusters


async def started_cluster(
    seed: int = 1, zookeeper_latency: float = 0.0005, **config: str
) -> tuple[SimulatedCluster, Invariants]:
    """Three brokers; deaths are noticed by the session's end alone, as in Kafka."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    cluster = SimulatedCluster(seed, config={"failure.detection": "session", **settings})
    cluster.zookeeper.latency = zookeeper_latency
    checker = Invariants(cluster)
    checker.install()
    await cluster.start()
    return cluster, checker


async def create_topic(cluster: SimulatedCluster, leader: int = 1) -> None:
    replicas = [leader, *(b for b in cluster.broker_ids if b != leader)]
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, configs=GATED, assignments={0: replicas})


def _controller(cluster: SimulatedCluster) -> int:
    return znodes.decode_controller(cluster.zookeeper.tree.node(znodes.CONTROLLER).data)


async def quick_bounce() -> None:
    """A broker is back before its session has ended; what its earlier life was still to be told
    arrives."""
    cluster, checker = await started_cluster()
    await create_topic(cluster)
    controller = _controller(cluster)
    victim, other = (b for b in cluster.broker_ids if b != controller)
    cluster.cut(controller, victim)
    cluster.kill(other)  # that is news for the victim, which wait at the cut
    cluster.start_broker(other)
    await cluster.serving()
    cluster.part_from_zookeeper(controller)  # it does not hear that the victim restarts
    cluster.kill(victim)
    cluster.start_broker(victim)
    await cluster.serving()
    await asyncio.sleep(2.0)
    cluster.reunite_with_zookeeper(controller)
    await checker.at_rest()


async def last_replica_standing() -> None:
    """The ISR shrinks to the leader, which then loses its power and alone may lead again."""
    stage = Stage(1, {}, min_isr=1)
    checker = Invariants(stage.cluster)
    checker.install()
    await stage.open()
    await stage.produce(numbers("all-"))
    stage.isolate(stage.leader)
    await stage.produce([b"behind"], acks=1)
    await stage.until_isr(stage.leader)
    await stage.produce(numbers("alone-"))
    stage.lose_power(stage.leader)
    stage.cluster.start_broker(stage.leader)
    await stage.until_led()
    await stage.until_whole()
    await checker.at_rest()


async def join_race() -> None:
    """A replica outside the ISR catches up; while its leader's wish to admit it is on its way, it
    loses power and is back with less."""
    cluster, checker = await started_cluster()
    await asyncio.sleep(1.0)
    controller = _controller(cluster)
    leader, joiner = (b for b in cluster.broker_ids if b != controller)
    await create_topic(cluster, leader)
    cluster.kill(joiner)
    while joiner in checker.state_of(TP).isr:
        await asyncio.sleep(0.1)
    await produce_numbers(cluster, History(), range(20))
    end = checker.truths[TP].high_watermark
    cluster.network.links.delay((cluster.host(leader), cluster.host(controller)), 20.0)
    cluster.start_broker(joiner)
    while end_of(cluster, joiner) < end:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    cluster.kill(joiner, keep_unflushed=False)
    cluster.start_broker(joiner)
    cluster.cut(leader, joiner)
    await cluster.serving()
    await asyncio.sleep(25.0)
    cluster.network.links.delay((cluster.host(leader), cluster.host(controller)), 0.0)
    cluster.heal(leader, joiner)
    await checker.at_rest()


def end_of(cluster: SimulatedCluster, broker_id: int) -> int:
    """Where the replica of a broker ends, as far as it has begun."""
    for broker in cluster.brokers().values():
        if broker.broker_id == broker_id:
            partition = broker.replica_manager.partitions.get(TP)
            if partition is not None and partition.log is not None:
                return partition.log.log_end_offset
    return -1


async def double_controller() -> None:
    """A controller sleeps; another is elected; the first wakes up with work in its queue."""
    cluster, checker = await started_cluster()
    await create_topic(cluster)
    await produce_numbers(cluster, History(), range(3))
    old = _controller(cluster)
    victim = next(b for b in cluster.broker_ids if b != old)
    cluster.pause(old)
    cluster.expire_session(victim)
    await asyncio.sleep(0.01)
    session = await cluster.zookeeper.client("operator").connect(6000, 1000)
    await session.delete(znodes.CONTROLLER)
    await asyncio.sleep(0.5)
    assert _controller(cluster) != old
    cluster.resume(old)
    await checker.at_rest()


async def torn_checkpoint() -> None:
    """The power fails while checkpoints are being written, again and again."""
    cluster, checker = await started_cluster(replica_high_watermark_checkpoint_interval_ms="20")
    await create_topic(cluster)
    for keep_unflushed in (True, False, False, False):  # the first restart makes the names durable
        for victim in cluster.broker_ids:
            await produce_numbers(cluster, History(), range(5))
            cluster.kill(victim, keep_unflushed)
            cluster.start_broker(victim)
            await cluster.serving()
            await checker.at_rest()


async def missed_watch() -> None:
    """A second broker registers just after the controller has read who lives."""
    one_way = 0.2
    cluster, checker = await started_cluster(zookeeper_latency=one_way)
    await create_topic(cluster)
    controller = _controller(cluster)
    first, second = (b for b in cluster.broker_ids if b != controller)
    cluster.kill(first)
    cluster.kill(second)
    await asyncio.sleep(10.0)
    cluster.start_broker(first)
    # One way with the event, one with the reading; then its answer and the second reading.
    await asyncio.sleep(3 * one_way)
    cluster.start_broker(second)
    await asyncio.sleep(10.0)
    await checker.at_rest()


async def ambiguous_write() -> None:
    """The first state of a partition is written, and the connection breaks before the answer."""
    cluster, checker = await started_cluster()
    while cluster.zookeeper.tree.find(znodes.CONTROLLER) is None:
        await asyncio.sleep(0.01)
    controller = _controller(cluster)
    (incarnation,) = (name for name, b in cluster.brokers().items() if b.broker_id == controller)
    session = cluster.zookeeper.client(incarnation).sessions[-1]

    def lose_next(events: list[WatchEvent]) -> None:
        path = znodes.partition_path(TP)
        if any(e.type is EventType.CREATED and e.path == path for e in events):
            cluster.zookeeper.lose_next_reply(session, znodes.CONTROLLER_EPOCH)

    cluster.zookeeper.observers.append(lose_next)
    with suppress(BarnabasError, TimeoutError):
        async with asyncio.timeout(30.0):
            await create_topic(cluster)
    await checker.at_rest()


KNOWN_SCHEDULES = {
    schedule.name: schedule
    for schedule in (
        KnownSchedule(
            "KIP-101a", kip_101a, "M1", ("I4 LeaderCompleteness", "I4b CandidateCompleteness")
        ),
        KnownSchedule("KIP-101b", kip_101b, "M1", ("I6 LogMatching", "I5 StrongIsr")),
        KnownSchedule("KIP-279", kip_279, "M2", ("I6 LogMatching", "I5 StrongIsr")),
        KnownSchedule("KIP-320a", kip_320a),
        KnownSchedule("KIP-320b", kip_320b, "M3", ("I4b CandidateCompleteness",)),
        KnownSchedule("LESO join", leso_join, "M4", ("I4b CandidateCompleteness",)),
        KnownSchedule("Pending-ISR", pending_isr, "M5", ("I3 QuorumSuperset",)),
        KnownSchedule("Re-add race", re_add_race),
        KnownSchedule(
            "KIP-966", last_replica_standing, "Last replica standing", ("I9 NoGlobalLoss",)
        ),
        KnownSchedule("Join race", join_race, "Join race", ("I4b CandidateCompleteness",)),
        KnownSchedule("Double controller", double_controller, "M6", ("I10 ControllerFencing",)),
        KnownSchedule("Quick bounce", quick_bounce, "M7", ("I11 BrokerEpoch",)),
        KnownSchedule("Torn checkpoint", torn_checkpoint, "M11", ("I20 Disk",)),
        KnownSchedule("Deposed leader", deposed_leader, "M12", ("I1 TypeOk",)),
        KnownSchedule(
            "Missed watch",
            missed_watch,
            "M13",
            ("L1 EveryPartitionHasALeader", "L2 IsrIsLiveReplicas"),
        ),
        KnownSchedule("Ambiguous write", ambiguous_write, "M16", ("L1 EveryPartitionHasALeader",)),
    )
}

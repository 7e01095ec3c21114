"""Known failures of a whole cluster, each as the shortest schedule that shows it."""

import asyncio
from contextlib import suppress

from barnabas import Admin, Producer
from barnabas_common.errors import BarnabasError
from barnabas_controller.store import znodes
from barnabas_controller.zookeeper.session import EventType, WatchEvent
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants

from tests.support.delivery import History
from tests.support.last_replica import Stage, numbers
from tests.support.replication_schedules import GATED
from tests.support.replication_world import TP
from tests.support.whole_cluster import produce as produce_numbers


async def started_cluster(
    seed: int = 1, zookeeper_latency: float = 0.0005, **config: str
) -> tuple[SimulatedCluster, Invariants]:
    """Start three brokers, whose deaths are noticed only by the end of a session, as in Kafka."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    cluster = SimulatedCluster(seed, config={"failure.detection": "session", **settings})
    cluster.zookeeper.latency = zookeeper_latency
    checker = Invariants(cluster)
    checker.install()
    await cluster.start()
    return cluster, checker


async def create_topic(cluster: SimulatedCluster, leader: int = 1) -> None:
    """Create the schedules' topic of one partition on all brokers, led by `leader`."""
    replicas = [leader, *(b for b in cluster.broker_ids if b != leader)]
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, configs=GATED, assignments={0: replicas})


def _controller(cluster: SimulatedCluster) -> int:
    return znodes.decode_controller(cluster.zookeeper.tree.node(znodes.CONTROLLER).data)


async def quick_bounce() -> None:
    """A broker is back before its session has ended.

    Requests for its earlier incarnation arrive.
    """
    cluster, checker = await started_cluster()
    await create_topic(cluster)
    controller = _controller(cluster)
    victim, other = (b for b in cluster.broker_ids if b != controller)
    cluster.cut(controller, victim)
    cluster.kill(other)  # its requests to the victim wait at the cut
    cluster.start_broker(other)
    await cluster.serving()
    cluster.part_from_zookeeper(controller)  # it does not learn that the victim restarts
    cluster.kill(victim)
    cluster.start_broker(victim)
    await cluster.serving()
    await asyncio.sleep(2.0)
    cluster.reunite_with_zookeeper(controller)
    await checker.at_rest()


async def answer_lost_with_the_leader() -> None:
    """A leader dies when its followers have a batch and the producer has no answer."""
    cluster, checker = await started_cluster()
    leader = 1
    await create_topic(cluster, leader)
    runtime = cluster.client_runtime("producer")
    async with Producer(cluster.bootstrap, runtime=runtime) as producer:
        await producer.send_and_wait(TP.topic, b"before", partition=0)
        cluster.network.cut(f"broker-{leader}", "producer")
        handle = await producer.send(TP.topic, b"unanswered", partition=0)
        await asyncio.sleep(1.0)
        cluster.kill(leader)
        await handle
    cluster.start_broker(leader)
    await cluster.serving()
    await checker.at_rest()


async def last_replica_standing() -> None:
    """The ISR shrinks to the leader, which loses power; only it may lead again."""
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
    """A replica outside the ISR catches up.

    While its leader's AlterPartition is in flight, it loses power and returns with fewer records.
    """
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
    """Return the log end offset of a broker's replica, once there is one."""
    for broker in cluster.brokers().values():
        if broker.broker_id == broker_id:
            partition = broker.replica_manager.partitions.get(TP)
            if partition is not None and partition.log is not None:
                return partition.log.log_end_offset
    return -1


async def double_controller() -> None:
    """A controller is paused; another is elected; the first resumes with events in its queue."""
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
    """The power fails repeatedly while checkpoints are being written."""
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
    """A second broker registers just after the controller has read the registered brokers."""
    one_way = 0.2
    cluster, checker = await started_cluster(zookeeper_latency=one_way)
    await create_topic(cluster)
    controller = _controller(cluster)
    first, second = (b for b in cluster.broker_ids if b != controller)
    cluster.kill(first)
    cluster.kill(second)
    await asyncio.sleep(10.0)
    cluster.start_broker(first)
    # One message with the watch event, one with the read; then its answer and the second read.
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

"""A replica that never got its StopReplica neither fetches nor leads forever."""

import asyncio

import pytest
from barnabas import Admin, Producer
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import Event, EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign import state
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.reassigning import TP as MOVING
from tests.support.reassigning import MovingPartition
from tests.support.replication_world import TP, ReplicationWorld

FLIGHTS = TopicPartition("flights", 0)


@pytest.mark.parametrize("ran_on", [True, False], ids=["stood still", "was dead"])
def test_a_topic_is_led_although_one_of_its_brokers_has_a_log_of_an_earlier_topic(
    ran_on: bool,
) -> None:
    """That broker was away while the partition moved away from it and the topic was deleted. If it
    has started since, it sets the log aside; otherwise its replica stays offline until the metadata
    have named the new topic for a while."""

    async def scenario() -> None:
        cluster = SimulatedCluster(brokers=4)
        await cluster.start()
        controller = state.controller(cluster)
        away, *others = (b for b in cluster.broker_ids if b != controller)
        assert controller is not None
        runtime = cluster.client_runtime("admin")
        async with Admin(cluster.bootstrap_of(others), runtime=runtime) as admin:
            await admin.create_topic("flights", assignments={0: [away, *others]})
            cluster.expire_session(away)
            (cluster.pause if ran_on else cluster.kill)(away)
            await admin.alter_partition_reassignments({("flights", 0): [controller, *others]})
            async with asyncio.timeout(60):
                while await admin.list_partition_reassignments():
                    await asyncio.sleep(1)
            await admin.delete_topics(["flights"])
            (cluster.resume if ran_on else cluster.start_broker)(away)
            async with asyncio.timeout(60):
                while away not in state.registered(cluster):
                    await asyncio.sleep(1)
                while not ran_on and not strays_of(cluster):
                    await asyncio.sleep(1)
            for event in strays_of(cluster):
                assert (event.broker_id, event.topic_partition) == (away, FLIGHTS)
                assert "its topic does not exist any more" in event.cause
            await admin.create_topic("flights", assignments={0: [away, *others]})
        runtime = cluster.client_runtime("producer")
        async with Producer(cluster.bootstrap_of(others), runtime=runtime) as producer:
            await producer.send_and_wait("flights", b"a", partition=0)
        known = cluster.broker(others[0]).metadata_cache.partition("flights", 0)
        assert known is not None
        assert known.offline_replicas == ([away] if ran_on else [])
        assert known.leader in others or not ran_on
        async with asyncio.timeout(60):
            while set(state.partition_states(cluster)[FLIGHTS].state.isr) != {away, *others}:
                await asyncio.sleep(1)
        assert "of topic id" in strays_of(cluster)[-1].cause
        if ran_on:
            assert "another topic has its name now" in strays_of(cluster)[-2].cause
        log = cluster.broker(away).log_manager.get(FLIGHTS)
        assert log is not None and log.log_end_offset == 1

    run(scenario())


def strays_of(cluster: SimulatedCluster) -> list[Event]:
    return [event for event in cluster.events() if event.kind is EventKind.REPLICA_STRAY]


def strays(world: ReplicationWorld, broker_id: int) -> int:
    told = world.incarnations[broker_id].events.since(0)
    return sum(event.kind is EventKind.REPLICA_STRAY for event in told)


async def three_and_then_two(leader: int) -> ReplicationWorld:
    """Broker 3 is no longer assigned the partition, and learns it only from UpdateMetadata."""
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    await world.create(1, 2, 3, leader=leader)
    await world.produce(b"a")
    await world.until_equal(1, 2, 3)
    world.states[TP].replicas = (1, 2)
    await world.elect(1, isr=(1, 2))
    return world


def test_a_stray_follower_asks_no_more() -> None:
    """Its leader has left too, and would refuse it forever."""

    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2, 3)
        await world.create(1, 2, 3, leader=2)
        await world.produce(b"a")
        await world.until_equal(1, 2, 3)
        world.states[TP].replicas = (1,)
        await world.elect(1, isr=(1,))
        assert await world.stop_replica(2, delete=True) == ErrorCode.NONE
        asked = len(world.incarnations[2].requests)
        await world.until(lambda: strays(world, 3) == 1)
        assert len(world.incarnations[2].requests) > asked
        assert world.incarnations[3].manager.partitions.get(TP) is None
        asked = len(world.incarnations[2].requests)
        await asyncio.sleep(60)
        assert len(world.incarnations[2].requests) == asked

    run(scenario())


def test_a_stray_keeps_its_log_and_goes_on_from_it_when_it_is_assigned_again() -> None:
    async def scenario() -> None:
        world = await three_and_then_two(leader=1)
        await world.until(lambda: strays(world, 3) == 1)
        assert world.incarnations[3].logs.get(TP) is not None
        await world.update_metadata()
        await asyncio.sleep(60)
        assert strays(world, 3) == 1, "told once"
        assert strays(world, 1) == strays(world, 2) == 0

        await world.produce(b"b")
        world.states[TP].replicas = (1, 2, 3)
        await world.elect(1)
        await world.until_equal(1, 2, 3)
        assert world.values(3) == [b"a", b"b"], "it goes on where its log ends"
        await asyncio.sleep(60)
        assert strays(world, 3) == 1

        world.states[TP].replicas = (1, 2)
        await world.elect(1, isr=(1, 2))
        await world.until(lambda: strays(world, 3) == 2)

    run(scenario())


def test_a_stray_that_believed_to_lead_resigns() -> None:
    async def scenario() -> None:
        world = await three_and_then_two(leader=3)
        zombie = await world.produce(b"lost", to=3, acks=1)
        assert zombie.error_code == ErrorCode.NONE
        await world.until(lambda: strays(world, 3) == 1)
        refused = await world.produce(b"refused", to=3, acks=1)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.states[TP].replicas = (1, 2, 3)
        await world.produce(b"b")
        await world.elect(1)
        await world.until_equal(1, 2, 3)
        assert world.values(3) == [b"a", b"b"]

    run(scenario())


def test_an_order_that_comes_in_time_leaves_no_stray() -> None:
    async def scenario() -> None:
        world = await three_and_then_two(leader=1)
        await asyncio.sleep(5)
        assert await world.stop_replica(3, delete=True) == ErrorCode.NONE
        await asyncio.sleep(60)
        assert strays(world, 3) == 0
        assert world.incarnations[3].logs.get(TP) is None

    run(scenario())


def of_cluster(moving: MovingPartition, broker_id: int) -> list[EventKind]:
    told = moving.cluster.broker(broker_id).events.since(0)
    return [event.kind for event in told if event.topic_partition == MOVING]


@pytest.mark.lengthy
def test_a_broker_that_was_dead_when_it_was_left_says_so_and_may_be_chosen_again() -> None:
    async def story() -> None:
        moving = MovingPartition(1, [1, 2, 3])
        await moving.start()
        async with moving.producing():
            await asyncio.sleep(0.5)
            moving.cluster.kill(3)
            await moving.insist([1, 2])
            await moving.until(lambda: moving.is_home(1, 2))
            moving.cluster.start_broker(3)
            await moving.cluster.serving()
            await moving.until(lambda: EventKind.REPLICA_STRAY in of_cluster(moving, 3))
            assert not moving.hosts(3)
            assert moving.cluster.disks[3].exists("/data/flights-0")
            await moving.reassign([3, 2])
            await moving.until(lambda: moving.is_home(3, 2))
            await asyncio.sleep(20)
        assert [b for b in moving.cluster.running_brokers if moving.hosts(b)] == [2, 3]
        for broker_id in (1, 2):
            assert EventKind.REPLICA_STRAY not in of_cluster(moving, broker_id)
        await moving.assert_nothing_lost()

    run(story(), seed=1, max_time=600)

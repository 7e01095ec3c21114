"""Suspicions in whole clusters, where a suspected broker that runs must register again.

Every acknowledged record is compared by value. `test_suspects.py` has the decisions of the
controller alone.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin
from barnabas_common.events import Event, EventKind
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge
from tests.support.whole_cluster import TP, leader_of, produce, read_back

# Sessions last 6 s, so everything earlier was caused by a suspicion.
SESSION_SECONDS = 6.0

Act = Callable[[SimulatedCluster, int], Awaitable[None]]


async def with_records(
    act: Act, victim: str, seed: int = 5, config: dict[str, str] | None = None
) -> SimulatedCluster:
    """Produce, act on the victim, produce more, compare; all replicas are in sync at the end."""
    cluster = SimulatedCluster(seed, config=config)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, 1, 3, configs={"min.insync.replicas": "2"})
        history = History()
        await produce(cluster, history, range(30))
        broker_id = await choose(cluster, admin, victim)
        producing = asyncio.ensure_future(produce(cluster, history, range(30, 330)))
        await asyncio.sleep(0.01)
        await act(cluster, broker_id)
        await producing
        await in_sync(admin)
    judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
    assert len(history.acked) == 330
    return cluster


async def choose(cluster: SimulatedCluster, admin: Admin, victim: str) -> int:
    controller = (await admin.describe_cluster()).controller_id
    leader = await leader_of(cluster)
    if victim == "controller":
        return controller
    if victim == "leader" and leader == controller:
        cluster.expire_session(controller)
        await asyncio.sleep(5.0)
        return await choose(cluster, admin, victim)
    followers = [b for b in cluster.broker_ids if b not in (leader, controller)]
    return leader if victim == "leader" else followers[0]


async def in_sync(admin: Admin) -> None:
    async with asyncio.timeout(30):
        while True:
            partition = (await admin.describe_topic(TP.topic)).partitions[0]
            if len(partition.in_sync_replicas) == 3 and partition.leader_id >= 0:
                return
            await asyncio.sleep(0.05)


def events(cluster: SimulatedCluster, kind: EventKind) -> list[Event]:
    """Return the events of one kind of all running brokers."""
    return [e for b in cluster.brokers().values() for e in b.events.since(0) if e.kind is kind]


async def kill_and_restart(cluster: SimulatedCluster, broker_id: int) -> None:
    cluster.kill(broker_id)
    await asyncio.sleep(3.0)
    assert events(cluster, EventKind.BROKER_SUSPECTED)
    assert not events(cluster, EventKind.BROKER_GONE), "before its session's end"
    cluster.start_broker(broker_id)
    await cluster.serving()


async def slander(cluster: SimulatedCluster, broker_id: int) -> None:
    """Reset and refuse the others' connections to the broker for half a second."""
    others = [b for b in cluster.broker_ids if b != broker_id]
    for other in others:
        cluster.network.reject(cluster.host(other), cluster.host(broker_id))
    await asyncio.sleep(0.5)
    for other in others:
        cluster.network.admit(cluster.host(other), cluster.host(broker_id))
    await asyncio.sleep(3.0)


async def sleep_a_second(cluster: SimulatedCluster, broker_id: int) -> None:
    cluster.pause(broker_id)
    await asyncio.sleep(1.0)
    cluster.resume(broker_id)


async def sleep_past_the_session(cluster: SimulatedCluster, broker_id: int) -> None:
    cluster.pause(broker_id)
    await asyncio.sleep(3 * SESSION_SECONDS)
    cluster.resume(broker_id)


@pytest.mark.parametrize("victim", ["leader", "follower", "controller"])
def test_a_death_loses_nothing_and_is_over_before_the_session(victim: str) -> None:
    run(with_records(kill_and_restart, victim), seed=5, max_time=600)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("victim", ["leader", "follower", "controller"])
def test_a_false_alarm_loses_nothing_and_the_suspect_registers_again(
    victim: str, seed: int
) -> None:
    async def story() -> None:
        cluster = await with_records(slander, victim, seed)
        if victim == "controller":  # it may win the election that follows, and suspects no broker
            assert events(cluster, EventKind.CONTROLLER_DEPOSED)
        else:
            assert events(cluster, EventKind.BROKER_SUSPECTED)
            assert events(cluster, EventKind.REGISTERED_ANEW)
        assert not events(cluster, EventKind.SESSION_LOST)
        elected = events(cluster, EventKind.LEADER_ELECTED)
        assert not any(event.details["unclean"] for event in elected)

    run(story(), seed=seed, max_time=600)


@pytest.mark.parametrize("victim", ["leader", "follower", "controller"])
def test_a_pause_of_a_second_changes_nothing(victim: str) -> None:
    async def story() -> None:
        cluster = await with_records(sleep_a_second, victim)
        assert not events(cluster, EventKind.BROKER_SUSPECTED)
        assert not events(cluster, EventKind.CONTROLLER_DEPOSED)

    run(story(), seed=5, max_time=600)


@pytest.mark.parametrize("victim", ["leader", "controller"])
def test_a_paused_broker_that_wakes_up_replaced_does_no_harm(victim: str) -> None:
    async def story() -> None:
        cluster = await with_records(sleep_past_the_session, victim)
        assert not events(cluster, EventKind.BROKER_SUSPECTED)
        active = [b for b in cluster.brokers().values() if b.membership.controller.is_active]
        assert len(active) == 1

    run(story(), seed=5, max_time=600)


def test_a_switch_waits_for_the_session_as_kafka_does() -> None:
    async def act(cluster: SimulatedCluster, broker_id: int) -> None:
        epoch = cluster.broker_ids
        cluster.kill(broker_id)
        await asyncio.sleep(SESSION_SECONDS - 1.5)
        assert not events(cluster, EventKind.BROKER_SUSPECTED)
        assert not events(cluster, EventKind.BROKER_GONE)
        await asyncio.sleep(3.0)
        assert events(cluster, EventKind.BROKER_GONE), epoch
        cluster.start_broker(broker_id)
        await cluster.serving()

    async def story() -> None:
        await with_records(act, "leader", config={"failure.detection": "session"})

    run(story(), seed=5, max_time=600)


def test_a_topic_without_replicas_outlives_a_false_alarm() -> None:
    """With replication factor 1 and acks=all its leader continues, and nothing is lost."""

    async def story() -> None:
        cluster = SimulatedCluster(7)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, 1, 1)
            leader = await leader_of(cluster)
            history = History()
            producing = asyncio.ensure_future(produce(cluster, history, range(300)))
            await slander(cluster, leader)
            await producing
            assert await leader_of(cluster) == leader
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
        assert len(history.acked) == 300

    run(story(), seed=7, max_time=600)

"""ZooKeeper is down, or returns older than it was: every broker reports it as an event."""

import asyncio

from barnabas import Admin
from barnabas_broker.server.zookeeper_outage import LOOK_SECONDS
from barnabas_common.events import Event, EventKind
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

KINDS = (
    EventKind.ZOOKEEPER_UNREACHABLE,
    EventKind.ZOOKEEPER_BEHIND,
    EventKind.ZOOKEEPER_REACHABLE,
)
SESSION = {"zookeeper.session.timeout.ms": "6000"}


def reports(cluster: SimulatedCluster) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {broker_id: [] for broker_id in cluster.broker_ids}
    for event in cluster.events():
        if event.kind in KINDS:
            found[event.broker_id].append(event)
    return found


def seconds_of(event: Event) -> int:
    seconds = event.details["seconds"]
    assert isinstance(seconds, int)
    return seconds


def test_an_outage_longer_than_the_session_timeout_is_reported_and_its_end_too() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1, config=SESSION)
        await cluster.start()
        cluster.zookeeper.stop()
        await asyncio.sleep(20)
        cluster.zookeeper.start()
        await asyncio.sleep(5)
        for events in reports(cluster).values():
            away, back = events
            assert away.kind is EventKind.ZOOKEEPER_UNREACHABLE
            assert 0 <= seconds_of(away) - 6 <= LOOK_SECONDS
            assert back.kind is EventKind.ZOOKEEPER_REACHABLE and seconds_of(back) == 20

    run(story(), seed=1, max_time=100)


def test_it_is_reported_again_each_minute() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1, config=SESSION)
        await cluster.start()
        cluster.zookeeper.stop()
        await asyncio.sleep(130)
        for events in reports(cluster).values():
            first, second, third = map(seconds_of, events)
            assert 0 <= first - 6 <= LOOK_SECONDS
            assert 0 <= second - first - 60 <= LOOK_SECONDS
            assert 0 <= third - second - 60 <= LOOK_SECONDS

    run(story(), seed=1, max_time=200)


def test_a_short_break_is_no_event() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1, config=SESSION)
        await cluster.start()
        cluster.zookeeper.stop()
        await asyncio.sleep(2)
        cluster.zookeeper.start()
        await asyncio.sleep(20)
        assert not any(reports(cluster).values())

    run(story(), seed=1, max_time=100)


def test_a_zookeeper_that_is_behind_is_named_with_what_to_do() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1, config=SESSION)
        await cluster.start()
        await asyncio.sleep(1)
        copy = cluster.zookeeper.copy()
        for number in range(100):
            cluster.zookeeper.put("/newer", b"%d" % number)
        cluster.expire_session(1)
        await asyncio.sleep(5)
        cluster.zookeeper.stop()
        cluster.zookeeper.restore(copy)
        cluster.zookeeper.start()
        await asyncio.sleep(30)
        for events in reports(cluster).values():
            (event,) = events
            assert event.kind is EventKind.ZOOKEEPER_BEHIND
            assert "restarting every broker" in event.cause
        for broker_id in cluster.broker_ids:  # the operator's deliberate step
            cluster.kill(broker_id)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()

    run(story(), seed=1, max_time=200)


async def seconds_to_stop(cluster: SimulatedCluster, broker_id: int) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await cluster.stop_broker(broker_id)
    return loop.time() - began


def test_a_broker_that_is_told_to_stop_does_not_wait_for_zookeeper() -> None:
    """It asked the controller three times, 30 s each; the controller waits for ZooKeeper too."""

    async def story() -> None:
        cluster = SimulatedCluster(seed=1, config=SESSION)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("t", partitions=3, replication_factor=3)
        cluster.zookeeper.stop()
        at_once = await seconds_to_stop(cluster, 1)
        assert at_once < 6 + 2 * LOOK_SECONDS, "it waits no longer than for the session to end"
        assert await seconds_to_stop(cluster, 2) < 2, "that is over"

    run(story(), seed=1, max_time=300)

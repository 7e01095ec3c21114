"""Pause points on virtual time: brokers are held exactly there, and continue afterwards."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.runtime import PausePoint
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge
from tests.support.whole_cluster import TP, leader_of, produce, read_back

CONFIG = {"replica.lag.time.max.ms": "4000", "replica.fetch.wait.max.ms": "500"}


@pytest.mark.parametrize("point", list(PausePoint))
def test_a_broker_held_anywhere_goes_on_when_released(point: PausePoint) -> None:
    """A failover reaches each point, and afterwards every acknowledged record is there."""

    async def story() -> None:
        config = CONFIG | {"replica.truncation.lookup": "offsets-for-leader-epoch"}
        cluster = SimulatedCluster(seed=1, config=config)
        await cluster.start()
        admin = Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin"))
        async with admin:
            await admin.create_topic(TP.topic, partitions=1, replication_factor=3)
        history = History()
        await produce(cluster, history, range(20))
        for broker_id in cluster.broker_ids:
            cluster.pauses.hold(broker_id, point)
        victim = await leader_of(cluster)
        cluster.kill(victim)
        cluster.start_broker(victim)
        await _first_reached(cluster, point)
        cluster.pauses.release_all()
        await cluster.serving()
        await produce(cluster, history, range(20, 40))
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    run(story(), seed=1, max_time=120.0)


async def _first_reached(cluster: SimulatedCluster, point: PausePoint) -> None:
    """Wait until one of the brokers is held at the point."""
    reached: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def watch(broker_id: int) -> None:
        await cluster.pauses.reached(broker_id, point, within=60.0)
        if not reached.done():
            reached.set_result(broker_id)

    watching = [asyncio.create_task(watch(broker_id)) for broker_id in cluster.broker_ids]
    async with asyncio.timeout(60.0):
        await reached
    for task in watching:
        task.cancel()


def test_a_killed_broker_no_longer_stands_at_its_point_and_its_successor_is_held_too() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=2, config=CONFIG)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, partitions=1, replication_factor=3)
        leader = await leader_of(cluster)
        follower = next(b for b in cluster.broker_ids if b != leader)
        point = PausePoint.FOLLOWER_BEFORE_FETCH
        cluster.pauses.hold(follower, point)
        await cluster.pauses.reached(follower, point)
        cluster.kill(follower)
        with pytest.raises(TimeoutError):
            await cluster.pauses.reached(follower, point, within=0.0)
        cluster.start_broker(follower)
        await cluster.pauses.reached(follower, point)
        cluster.pauses.release(follower, point)
        await cluster.serving()

    run(story(), seed=2, max_time=120.0)

"""A leader restarts while there is no controller; the next one reads what was written by hand."""

import asyncio
from dataclasses import replace

import pytest
from barnabas import Admin
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.control_world import QUIET, ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)


@pytest.mark.parametrize("set_back", [1, 2])
def test_it_gets_a_leader_epoch_that_no_other_has_had(set_back: int) -> None:
    """It remembers none, so it could not refuse one that another leader has had."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 4, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        await world.until_state(FLIGHTS, lambda state: state.isr == (2, 3))
        await world.kill_and_expire(2)
        await world.until_state(FLIGHTS, lambda state: state.leader == 3)
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda state: state.leader == -1)
        await world.start_broker(3)
        newest = await world.until_state(FLIGHTS, lambda state: state.leader == 3)
        controller = world.kill(1)
        await world.kill_and_expire(3)
        older = replace(newest, leader_epoch=newest.leader_epoch - set_back)
        world.zookeeper.put(znodes.state_path(FLIGHTS), znodes.encode_state(older))
        await world.start_broker(3)
        world.zookeeper.expire(controller.session)
        await world.until(lambda: world.controller() is not None)
        state = await world.until_state(FLIGHTS, lambda s: s.leader_epoch > older.leader_epoch)
        assert state.leader_epoch > newest.leader_epoch
        assert (state.leader, state.isr) == (3, (3,))

    run_world(test, replace(QUIET, min_insync_replicas=1))


def test_a_leader_that_only_has_another_session_keeps_its_epoch() -> None:
    """After a ZooKeeper that was away for long; it knows its epoch."""

    async def scenario() -> None:
        cluster = SimulatedCluster(3)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("flights", partitions=3, replication_factor=3)
        partitions = [TopicPartition("flights", number) for number in range(3)]
        while any(len(cluster.hosted(partition)) < 3 for partition in partitions):
            await asyncio.sleep(0.1)
        for broker_id in cluster.broker_ids:
            cluster.expire_session(broker_id)
        await asyncio.sleep(60)
        for partition in partitions:
            assert {replica.leader_epoch for replica in cluster.hosted(partition)} == {0}

    run(scenario(), seed=3)

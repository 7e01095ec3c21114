"""A number in ZooKeeper is written back by hand: the epoch of a partition, or of the controller.

Brokers refuse older epochs and answer with those that they hold, and the controller elects above
those. Clients continue, no acknowledged record is lost, and all replicas agree on the leader
epochs.
"""

import asyncio
from dataclasses import replace

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas.cluster.lower_epochs import GRACE
from barnabas_common.events import EventKind
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.zookeeper.session import ConnectionLoss
from barnabas_simulator.campaign import state

from tests.support.whole_cluster import TP
from tests.support.zookeeper_scene import (
    SECONDS_TO_HEAL,
    Scene,
    controller,
    data,
    in_a_cluster,
    made_again,
    restart_controller,
    stop,
)


@pytest.mark.parametrize("seed", range(6))
def test_a_state_written_back_is_elected_above_what_the_replicas_hold(seed: int) -> None:
    async def test(scene: Scene) -> None:
        path = znodes.state_path(TP)
        old = data(scene.cluster, path)
        for _ in range(2):
            await scene.restart_leader()
        scene.cluster.zookeeper.put(path, old)
        await restart_controller(scene)
        await scene.check()
        assert scene.events(EventKind.EPOCH_RAISED)

    in_a_cluster(test, seed)


@pytest.mark.parametrize("gone", ["a follower", "the leader"])
@pytest.mark.parametrize("seed", range(6))
def test_a_controller_that_knows_a_newer_state_does_not_wait_for_another_controller(
    seed: int, gone: str
) -> None:
    """The ISR shrinks and another leader is elected, as if nothing had been written."""

    async def test(scene: Scene) -> None:
        cluster, path = scene.cluster, znodes.state_path(TP)
        old = data(cluster, path)
        for _ in range(2):
            await scene.restart_leader()
        await scene.produce()
        cluster.zookeeper.put(path, old)
        leader, now = scene.leader_in_fact(), controller(cluster)
        others = [b for b in cluster.broker_ids if b not in (leader, now)]
        victim = leader if gone == "the leader" else others[0]
        cluster.kill(victim)
        await asyncio.sleep(20)
        await scene.produce()
        if victim != now:
            assert controller(cluster) == now
        cluster.start_broker(victim)
        await cluster.serving()
        await scene.check()
        assert scene.events(EventKind.EPOCH_RAISED)

    in_a_cluster(test, seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_state_written_back_whose_leader_is_gone_is_not_elected_from(seed: int) -> None:
    """Two elections from it would reach the leader epoch that replicas hold, with another leader.
    The new controller's broker was told of that epoch."""

    async def test(scene: Scene) -> None:
        cluster, path = scene.cluster, znodes.state_path(TP)
        first = replace(state.partition_states(cluster)[TP].state)
        for _ in range(2):
            await scene.restart_leader()
        newest = state.partition_states(cluster)[TP].state
        older = replace(newest, leader_epoch=first.leader_epoch)
        cluster.zookeeper.put(path, znodes.encode_state(older))
        cluster.kill(newest.leader)
        if controller(cluster) == newest.leader:
            await asyncio.sleep(1)
        else:
            cluster.zookeeper.delete(znodes.CONTROLLER)
        await asyncio.sleep(20)
        cluster.start_broker(newest.leader)
        await scene.check()
        leaders: dict[int, set[int]] = {}
        for event in scene.events(EventKind.BECAME_LEADER):
            if event.topic_partition == TP:
                epoch = event.details["leader_epoch"]
                assert isinstance(epoch, int)
                leaders.setdefault(epoch, set()).add(event.broker_id)
        assert all(len(found) == 1 for found in leaders.values()), leaders

    in_a_cluster(test, seed)


@pytest.mark.parametrize("leaves", ["the leader in ZooKeeper", "the leader in fact"])
def test_an_election_while_the_refusals_settle_names_no_second_leader_for_an_epoch(
    leaves: str,
) -> None:
    async def test(scene: Scene) -> None:
        cluster, path = scene.cluster, znodes.state_path(TP)
        old, before = data(cluster, path), scene.leader()
        await stop(scene, before)
        await scene.produce()
        led = state.partition_states(cluster)[TP].state
        cluster.start_broker(before)
        await scene.whole()

        cluster.zookeeper.put(path, old)
        cluster.zookeeper.delete(znodes.CONTROLLER)
        async with asyncio.timeout(SECONDS_TO_HEAL):
            while not scene.events(EventKind.STATE_UNCONFIRMED):
                await asyncio.sleep(0.01)
        leaving = before if leaves == "the leader in ZooKeeper" else led.leader
        await stop(scene, leaving)
        named = {led.leader_epoch: led.leader}
        for event in scene.events(EventKind.LEADER_ELECTED) + scene.events(EventKind.ISR_CHANGED):
            epoch, leader = event.details.get("leader_epoch"), event.details.get("leader")
            if event.topic_partition == TP and leader is not None:
                assert named.setdefault(epoch, leader) == leader, event
        cluster.start_broker(leaving)
        await scene.check()

    in_a_cluster(test)


def test_clients_go_on_where_leader_epochs_are_given_again() -> None:
    """No leader of the later epochs appended anything, and no replica remembers them."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        first = state.partition_states(cluster)[TP].state
        runtime, servers = cluster.client_runtime, cluster.bootstrap
        async with (
            Producer(servers, runtime=runtime("producer")) as producer,
            Consumer(TP.topic, bootstrap_servers=servers, runtime=runtime("consumer")) as consumer,
        ):

            async def both(number: int) -> None:
                """Both use the partition, so that they know its leader epoch."""
                async with asyncio.timeout(GRACE + 30):
                    await producer.send(TP.topic, b"last %d" % number, partition=0)
                    async for record in consumer:
                        if record.value == b"last %d" % number:
                            break

            for _ in range(3):
                await _elect_again(scene)
            await both(1)
            for _ in range(3):
                await _elect_again(scene)
                await consumer.poll(timeout_ms=2_000)
            newest = state.partition_states(cluster)[TP].state
            for broker_id in cluster.broker_ids:
                cluster.kill(broker_id)
            older = replace(newest, leader_epoch=newest.leader_epoch - 4)
            assert older.leader_epoch > first.leader_epoch
            made_again(cluster, znodes.state_path(TP), znodes.encode_state(older))
            for broker_id in cluster.broker_ids:
                cluster.start_broker(broker_id)
            await scene.whole()
            assert state.partition_states(cluster)[TP].state.leader_epoch < newest.leader_epoch
            await both(2)

    in_a_cluster(test)


async def _elect_again(scene: Scene) -> None:
    """The next leader epoch, without records."""
    leader = scene.leader()
    await stop(scene, leader)
    scene.cluster.start_broker(leader)
    await scene.whole()


@pytest.mark.parametrize("deletes", [True, False], ids=["", "its deletion of /controller fails"])
def test_a_controller_epoch_made_again_is_raised_above_what_brokers_have_accepted(
    deletes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_controller = FencedStore.delete_controller
    failed = []

    async def fail_once(store: FencedStore) -> None:
        if deletes or failed:
            await delete_controller(store)
        else:
            failed.append(store)
            raise ConnectionLoss

    monkeypatch.setattr(FencedStore, "delete_controller", fail_once)

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        for _ in range(3):
            await restart_controller(scene)
            await scene.whole()
        old = controller(cluster)
        knowing = next(b for b in cluster.broker_ids if b != old)
        cluster.part_from_zookeeper(knowing)  # it knows the epoch, and cannot be elected
        others = [b for b in cluster.broker_ids if b != knowing]
        for broker_id in others:
            cluster.kill(broker_id)
        await asyncio.sleep(10)
        made_again(cluster, znodes.CONTROLLER_EPOCH, b"1")
        for partition, known in state.partition_states(cluster).items():
            older = replace(known.state, controller_epoch=1)
            cluster.zookeeper.put(znodes.state_path(partition), znodes.encode_state(older))
        for broker_id in others:
            cluster.start_broker(broker_id)
        await cluster.serving()
        cluster.reunite_with_zookeeper(knowing)
        await scene.check()
        if deletes:
            (event,) = scene.events(EventKind.EPOCH_RAISED)[:1]
            assert f"broker {knowing} has accepted controller epoch" in event.cause

    in_a_cluster(test)
    assert deletes or failed


def test_a_controller_epoch_written_back_is_passed_by_the_next_election() -> None:
    """No broker remembers it, and only one partition has changed since: its state must not be
    invalid for the controllers that follow."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("others", 3, 3)
        await scene.whole()
        for _ in range(3):
            await restart_controller(scene)
            await scene.whole()
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        for partition, known in state.partition_states(cluster).items():
            if partition != TP:
                older = replace(known.state, controller_epoch=1)
                cluster.zookeeper.put(znodes.state_path(partition), znodes.encode_state(older))
        cluster.zookeeper.put(znodes.CONTROLLER_EPOCH, b"1")
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await scene.check()
        assert not scene.events(EventKind.EPOCH_RAISED)

    in_a_cluster(test)


def test_a_controller_epoch_made_again_that_no_broker_remembers_is_raised_above_the_states() -> (
    None
):
    """All brokers have restarted since; the states say under which epochs they were written."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        for _ in range(3):
            await restart_controller(scene)
            await scene.whole()
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        made_again(cluster, znodes.CONTROLLER_EPOCH, b"1")
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await scene.check()
        (event,) = scene.events(EventKind.EPOCH_RAISED)[:1]
        assert "most states were written under later controller epochs" in event.cause

    in_a_cluster(test)

"""ZooKeeper is older than the brokers: a number was written back, or an older copy restored.

Brokers refuse older epochs and answer with those that they hold, and the controller elects above
those. Clients continue, no acknowledged record is lost, and all replicas agree on the leader
epochs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from barnabas import Admin, ConfigResource
from barnabas.explain import About
from barnabas_common.events import Event, EventKind
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.zookeeper.session import ConnectionLoss
from barnabas_simulator.campaign import state
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import TP, read_back, send

SECONDS_TO_HEAL = 20.0
SETTINGS = {"zookeeper.session.timeout.ms": "6000", "replica.lag.time.max.ms": "5000"}


class Scene:
    """A cluster of three brokers with one topic, and the acknowledged records."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.acknowledged: list[bytes] = []

    async def produce(self, count: int = 20) -> None:
        first = len(self.acknowledged)
        values = [b"%d" % number for number in range(first, first + count)]
        async with asyncio.timeout(60):
            await send(self.cluster, TP, values)
        self.acknowledged += values

    def leader(self) -> int:
        return state.partition_states(self.cluster)[TP].state.leader

    def leader_in_fact(self) -> int:
        """The broker that leads by its own account."""
        return next(
            broker.broker_id
            for broker in self.cluster.brokers().values()
            if (found := broker.replica_manager.partitions.get(TP)) and found.leadership
        )

    async def whole(self) -> None:
        """Wait until the three replicas are in sync and agree about the leader."""
        async with asyncio.timeout(SECONDS_TO_HEAL):
            while not self._is_whole():
                await asyncio.sleep(0.05)

    def _is_whole(self) -> bool:
        told = state.partition_states(self.cluster).get(TP)
        if told is None or set(told.state.isr) != {1, 2, 3}:
            return False
        return all(
            known is not None
            and (known.leader, known.leader_epoch) == (told.state.leader, told.state.leader_epoch)
            for known in (
                broker.metadata_cache.partition(*TP) for broker in self.cluster.brokers().values()
            )
        )

    async def restart_leader(self) -> None:
        """Kill the leader, wait for another, and restart the first as a follower."""
        leader = self.leader()
        self.cluster.kill(leader)
        async with asyncio.timeout(SECONDS_TO_HEAL):
            while self.leader() in (leader, -1):
                await asyncio.sleep(0.05)
        await self.produce()
        self.cluster.start_broker(leader)
        await self.whole()

    async def check(self) -> None:
        """Check that it serves, that nothing acknowledged is lost, and that replicas are equal."""
        await self.whole()
        await self.produce()
        assert [value for _, value in await read_back(self.cluster)] == self.acknowledged
        await asyncio.sleep(1)
        self.check_epochs()
        await self.restart_leader()  # the death of a leader leads to an ordinary election
        assert [value for _, value in await read_back(self.cluster)] == self.acknowledged
        await asyncio.sleep(1)
        self.check_epochs()

    def check_epochs(self) -> None:
        logs = {
            broker.broker_id: broker.log_manager.get(TP)
            for broker in self.cluster.brokers().values()
        }
        epochs = {}
        for broker_id, log in logs.items():
            assert log is not None
            cache = log.leader_epochs
            epochs[broker_id] = [cache.epoch_for_offset(o) for o in range(log.log_end_offset)]
        assert epochs[1] == epochs[2] == epochs[3], epochs

    def events(self, kind: EventKind) -> list[Event]:
        return [event for event in self.cluster.events() if event.kind is kind]


def in_a_cluster(test: Callable[[Scene], Awaitable[None]], seed: int = 1) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=seed, config=SETTINGS)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, 1, 3, configs={"min.insync.replicas": "2"})
        scene = Scene(cluster)
        await scene.produce()
        await test(scene)

    run(story(), seed=seed, max_time=600)


def data(cluster: SimulatedCluster, path: str) -> bytes:
    node = cluster.zookeeper.tree.find(path)
    assert node is not None
    return node.data


def controller(cluster: SimulatedCluster) -> int:
    found = state.controller(cluster)
    assert found is not None
    return found


async def restart_controller(scene: Scene) -> None:
    """Kill the controller, wait for another one, and restart it."""
    old = controller(scene.cluster)
    scene.cluster.kill(old)
    await asyncio.sleep(10)
    scene.cluster.start_broker(old)
    await scene.cluster.serving()


async def stop(scene: Scene, broker_id: int) -> None:
    """Stop a broker in order, and wait for another leader than it."""
    await scene.cluster.stop_broker(broker_id)
    async with asyncio.timeout(SECONDS_TO_HEAL):
        while scene.leader() in (broker_id, -1):
            await asyncio.sleep(0.05)


# ---- one number written back


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


@pytest.mark.parametrize("deletes", [True, False], ids=["", "its deletion of /controller fails"])
def test_a_controller_epoch_written_back_is_raised_above_what_brokers_have_accepted(
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
        cluster.zookeeper.put(znodes.CONTROLLER_EPOCH, b"1")
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


def test_a_controller_epoch_written_back_that_no_broker_remembers_is_raised_above_the_states() -> (
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
        cluster.zookeeper.put(znodes.CONTROLLER_EPOCH, b"1")
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await scene.check()
        (event,) = scene.events(EventKind.EPOCH_RAISED)[:1]
        assert "most states were written under later controller epochs" in event.cause

    in_a_cluster(test)


# ---- an older copy restored


async def an_older_copy(scene: Scene) -> None:
    copy = scene.cluster.zookeeper.copy()
    for _ in range(3):
        await scene.restart_leader()
    scene.cluster.zookeeper.stop()
    scene.cluster.zookeeper.restore(copy)
    scene.cluster.zookeeper.start()
    await asyncio.sleep(15)
    assert scene.events(EventKind.ZOOKEEPER_BEHIND)


@pytest.mark.parametrize("seed", range(4))
def test_all_brokers_restarted_together_serve_an_older_copy(seed: int) -> None:
    async def test(scene: Scene) -> None:
        await an_older_copy(scene)
        for broker_id in scene.cluster.broker_ids:
            scene.cluster.kill(broker_id)
        for broker_id in scene.cluster.broker_ids:
            scene.cluster.start_broker(broker_id)
        await scene.cluster.serving()
        await scene.check()

    in_a_cluster(test, seed)


@pytest.mark.parametrize("seed", range(4))
def test_brokers_restarted_one_by_one_serve_an_older_copy(seed: int) -> None:
    async def test(scene: Scene) -> None:
        await an_older_copy(scene)
        for broker_id in scene.cluster.broker_ids:
            scene.cluster.kill(broker_id)
            scene.cluster.start_broker(broker_id)
            await asyncio.sleep(5)
        await scene.cluster.serving()
        await scene.check()

    in_a_cluster(test, seed)


@pytest.mark.parametrize("absent", [1, 2, 3])
def test_a_replica_that_was_away_since_the_copy_does_not_lead_without_the_records(
    absent: int,
) -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        copy = cluster.zookeeper.copy()
        for _ in range(3):
            await scene.restart_leader()
        cluster.kill(absent)
        await asyncio.sleep(15)
        await scene.produce()
        cluster.zookeeper.stop()
        cluster.zookeeper.restore(copy)
        cluster.zookeeper.start()
        for broker_id in cluster.broker_ids:
            if broker_id != absent:
                cluster.kill(broker_id)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("order", ["together", "absent first", "absent last"])
@pytest.mark.parametrize("absent", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_a_member_of_the_copys_isr_that_left_it_since_does_not_lead_without_the_records(
    seed: int, absent: int, order: str
) -> None:
    """No epoch shows it: the broker was a member, or the leader, when the copy was taken."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        copy = cluster.zookeeper.copy()
        await asyncio.sleep(12)  # two intervals of stamps
        cluster.kill(absent)
        await asyncio.sleep(15)
        await scene.produce()
        cluster.zookeeper.stop()
        cluster.zookeeper.restore(copy)
        cluster.zookeeper.start()
        others = [broker_id for broker_id in cluster.broker_ids if broker_id != absent]
        for broker_id in others:
            cluster.kill(broker_id)
        first_to_last = [*others, absent] if order == "absent last" else [absent, *others]
        for broker_id in first_to_last:
            cluster.start_broker(broker_id)
            await asyncio.sleep(0 if order == "together" else 3)
        await cluster.serving()
        await scene.check()
        assert scene.events(EventKind.STATE_UNCONFIRMED)

    in_a_cluster(test, seed)


async def restored_without(scene: Scene, absent: int) -> None:
    """All brokers but one are started with an older copy; the newest records are on them."""
    cluster = scene.cluster
    copy = cluster.zookeeper.copy()
    await asyncio.sleep(12)
    await scene.produce()
    cluster.zookeeper.stop()
    cluster.zookeeper.restore(copy)
    cluster.zookeeper.start()
    for broker_id in cluster.broker_ids:
        cluster.kill(broker_id)
    for broker_id in cluster.broker_ids:
        if broker_id != absent:
            cluster.start_broker(broker_id)


@pytest.mark.parametrize("absent", [1, 2, 3])
def test_a_replica_that_stays_away_is_awaited_for_a_limited_time(absent: int) -> None:
    """The others are as many as each acknowledged record was written to."""

    async def test(scene: Scene) -> None:
        await restored_without(scene, absent)
        await asyncio.sleep(30)
        await scene.produce()
        scene.cluster.start_broker(absent)
        await scene.cluster.serving()
        await scene.check()

    in_a_cluster(test)


def test_an_unclean_election_does_not_wait_for_a_replica_that_may_have_more() -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.incremental_alter_configs(
                ConfigResource.topic(TP.topic), {"min.insync.replicas": "1"}
            )
        absent = next(b for b in cluster.broker_ids if b != scene.leader())
        await restored_without(scene, absent)
        await asyncio.sleep(30)
        for broker in cluster.brokers().values():
            partition = broker.replica_manager.partitions.get(TP)
            assert partition is None or partition.leadership is None, "the third may have more"
        refused = scene.events(EventKind.ELECTION_REFUSED)[-1].cause
        assert f"the replicas on [{absent}]" in refused, refused
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            explained = (await admin.explain(*TP)).of(About.LEADER)[0]
            assert "no broker leads: its state may come from an older copy" in explained
            results = await admin.elect_leaders("unclean", [TP])
        assert results == {TP: None}
        await scene.produce()
        cluster.start_broker(absent)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test)


def test_a_history_from_the_future_is_forgotten_aloud() -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        copy = cluster.zookeeper.copy()
        for broker_id in cluster.broker_ids:  # its history starts again, after the copy
            await scene.whole()
            cluster.kill(broker_id, keep_unflushed=False)
            await asyncio.sleep(10)
            cluster.start_broker(broker_id)
            await cluster.serving()
        await scene.whole()
        cluster.zookeeper.stop()
        cluster.zookeeper.restore(copy)
        cluster.zookeeper.start()
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await scene.check()
        causes = [event.cause for event in scene.events(EventKind.REGISTERED_ANEW)]
        assert any("restored from an older copy" in cause for cause in causes)
        for broker in cluster.brokers().values():
            assert 0 <= broker.membership.unbroken_since <= broker.membership.broker_epoch

    in_a_cluster(test)

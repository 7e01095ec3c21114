"""States from an older copy of ZooKeeper: who is asked, who is awaited, and for how long.

A replica left the ISR after the copy was taken, or never did; something else is wrong too. Nothing
acknowledged is lost, and the partition gets a leader as soon as that is certain.
"""

import asyncio
import json
from dataclasses import replace

import pytest
from barnabas import Admin, ConfigResource
from barnabas.explain import About
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_simulator.campaign import state
from barnabas_simulator.zookeeper.server import ZooKeeperCopy

from tests.support.whole_cluster import TP
from tests.support.zookeeper_scene import (
    Scene,
    controller,
    data,
    in_a_cluster,
    next_controller,
    restore,
)

# Longer than two intervals of the stamps: each broker is ahead of the copy then.
AHEAD_SECONDS = 20.0
GONE_SECONDS = 15.0
STATE, TOPIC = znodes.state_path(TP), znodes.topic_path(TP.topic)


async def copied(scene: Scene, absent: int | None = None) -> ZooKeeperCopy:
    """Take a copy; records are acknowledged after it, without one of the replicas."""
    copy = scene.cluster.zookeeper.copy()
    await asyncio.sleep(AHEAD_SECONDS)
    if absent is not None:
        scene.cluster.kill(absent)
        await asyncio.sleep(GONE_SECONDS)
    await scene.produce()
    return copy


async def set_minimum(scene: Scene, size: int) -> None:
    cluster = scene.cluster
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        topic = ConfigResource.topic(TP.topic)
        await admin.incremental_alter_configs(topic, {"min.insync.replicas": str(size)})


@pytest.mark.parametrize("how", ["restarts", "loses its session"])
@pytest.mark.parametrize("absent", [1, 2, 3])
def test_a_broker_stays_ahead_until_the_states_are_confirmed(absent: int, how: str) -> None:
    """It is the first to start, and lacks records; it must not forget that others may have more."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        restore(scene, await copied(scene, absent))
        cluster.start_broker(absent)
        await asyncio.sleep(5)
        if how == "restarts":
            cluster.kill(absent)
            cluster.start_broker(absent)
        else:
            cluster.expire_session(absent)
        await asyncio.sleep(15)
        for broker_id in cluster.broker_ids:
            if broker_id != absent:
                cluster.start_broker(broker_id)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("seed", range(3))
def test_the_replicas_with_the_newest_log_are_in_sync_at_once(seed: int) -> None:
    """The leader loses its power before any other could have joined, and its last records with it.
    It had not flushed them, and the others had them too."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        restore(scene, await copied(scene))
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        while not scene.events(EventKind.EPOCH_RAISED):
            await asyncio.sleep(0.001)
        leader = scene.leader()
        cluster.lose_power(leader)
        await asyncio.sleep(15)
        cluster.start_broker(leader)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test, seed)


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_replica_that_registers_late_makes_no_partition_wait(late: int, dies: bool) -> None:
    """It is ahead of ZooKeeper too, so the state that was written without it is unconfirmed again.
    The leader dies at that moment, before the late replica could join the ISR."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        restore(scene, await copied(scene))
        for broker_id in cluster.broker_ids:
            if broker_id != late:
                cluster.start_broker(broker_id)
        await asyncio.sleep(120)
        await scene.produce(400)
        cluster.start_broker(late)
        while cluster.zookeeper.tree.find(znodes.broker_path(late)) is None:
            await asyncio.sleep(0.0005)
        if dies:
            leader = scene.leader()
            cluster.kill(leader)
            async with asyncio.timeout(20):
                while scene.leader() in (leader, -1):
                    await asyncio.sleep(0.05)
            await scene.produce()
            cluster.start_broker(leader)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_confirmed_state_stays_confirmed_when_a_replica_leaves_the_isr(gone: int) -> None:
    """Also if it is the broker that registered last after the restore: the next controller knows
    that the state was written since."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        restore(scene, await copied(scene))
        await scene.start_all()
        await scene.whole()
        cluster.kill(gone)
        async with asyncio.timeout(GONE_SECONDS):
            while gone in state.partition_states(cluster)[TP].state.isr:
                await asyncio.sleep(0.05)
        asked = len(scene.events(EventKind.STATE_UNCONFIRMED))
        await next_controller(scene)
        assert len(scene.events(EventKind.STATE_UNCONFIRMED)) == asked
        cluster.start_broker(gone)
        await scene.check()

    in_a_cluster(test)


def test_a_replica_whose_log_is_lost_has_told_nothing() -> None:
    """Of the two with the records one has lost its folder, and the other is away."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        restore(scene, await copied(scene, absent=3))
        cluster.disks[1].remove_tree(f"/data/{TP}")
        cluster.disks[1].sync_directory("/data")
        for broker_id in (1, 3):
            cluster.start_broker(broker_id)
        await asyncio.sleep(60)
        cluster.start_broker(2)
        await asyncio.sleep(30)  # the state in the copy says already that all are in sync
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("stray", [1, 2, 3])
def test_a_replica_with_the_log_of_another_topic_has_told_nothing(stray: int) -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        restore(scene, await copied(scene))
        other = f"version: 0\ntopic_id: {'A' * 22}".encode()
        cluster.disks[stray].write_file(f"/data/{TP}/partition.metadata", other)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await scene.whole(within=60)
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("absent", [1, 2, 3])
def test_a_state_that_was_malformed_is_confirmed_when_it_is_mended(absent: int) -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        old = data(cluster, STATE)
        restore(scene, await copied(scene, absent))
        cluster.zookeeper.put(STATE, b"nonsense")
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await asyncio.sleep(20)
        cluster.zookeeper.put(STATE, old)
        await asyncio.sleep(5)
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_state_that_is_mended_holds_back_no_other_partition(late: int) -> None:
    """The replica that is ahead and registered last has just died, and its proof is gone from the
    states."""

    async def test(scene: Scene) -> None:
        cluster, other = scene.cluster, TopicPartition("other", 0)
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("other", assignments={0: [1, 2, 3]})
        restore(scene, await copied(scene))
        path = znodes.state_path(other)
        old = data(cluster, path)
        cluster.zookeeper.put(path, b"nonsense")
        for broker_id in sorted(cluster.broker_ids, key=lambda b: b == late):
            cluster.start_broker(broker_id)
            await cluster.serving()
        await scene.whole()
        cluster.kill(late)
        while late in state.partition_states(cluster)[TP].state.isr:
            await asyncio.sleep(0.01)
        cluster.zookeeper.put(path, old)
        running = cluster.broker(next(iter(cluster.running_brokers)))
        while running.metadata_cache.partition(*other) is None:
            await asyncio.sleep(0.01)
        cluster.start_broker(late)
        await scene.check()

    in_a_cluster(test)


def test_the_answer_of_a_replica_that_is_gone_does_not_count() -> None:
    """It has the newest log. The others have everything that was acknowledged."""

    async def test(scene: Scene) -> None:
        cluster, leader = scene.cluster, scene.leader()
        first, second = (b for b in cluster.broker_ids if b != leader)
        restore(scene, await copied(scene))
        cluster.start_broker(first)
        await asyncio.sleep(8)
        cluster.start_broker(leader)
        await asyncio.sleep(5)
        cluster.kill(leader)
        await asyncio.sleep(1)
        cluster.start_broker(second)
        await asyncio.sleep(120)
        await scene.produce()
        cluster.start_broker(leader)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test)


def test_a_registered_replica_that_cannot_be_asked_is_awaited_for_a_limited_time() -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        restore(scene, await copied(scene))
        cluster.start_broker(1)
        await asyncio.sleep(8)
        assert controller(cluster) == 1
        cluster.network.cut(cluster.host(1), cluster.host(2))
        cluster.network.cut(cluster.host(2), cluster.host(1))
        cluster.start_broker(2)
        cluster.start_broker(3)
        await asyncio.sleep(90)
        await scene.produce()
        cluster.network.heal(cluster.host(1), cluster.host(2))
        cluster.network.heal(cluster.host(2), cluster.host(1))
        await scene.check()

    in_a_cluster(test)


def test_a_topic_with_unclean_elections_does_not_wait_for_who_stays_away() -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        settings = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.incremental_alter_configs(ConfigResource.topic(TP.topic), settings)
        absent = next(b for b in cluster.broker_ids if b != scene.leader())
        await restored_without(scene, absent)
        await asyncio.sleep(60)
        await scene.produce()
        cluster.start_broker(absent)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test)


def test_a_reassignment_goes_on_when_the_replicas_have_answered() -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        first = state.partition_states(cluster)[TP].state
        for _ in range(2):
            await scene.restart_leader()
        newest = state.partition_states(cluster)[TP].state
        third = next(b for b in newest.isr if b != newest.leader)
        node = json.loads(data(cluster, TOPIC))
        node["removing_replicas"] = {"0": [third]}
        older = replace(newest, leader_epoch=first.leader_epoch)
        cluster.zookeeper.put(TOPIC, json.dumps(node).encode())
        cluster.zookeeper.put(STATE, znodes.encode_state(older))
        cluster.zookeeper.delete(znodes.CONTROLLER)
        await asyncio.sleep(60)
        assert json.loads(data(cluster, TOPIC))["removing_replicas"] == {}
        assert third not in state.partition_states(cluster)[TP].replicas

    in_a_cluster(test)


async def restored_without(scene: Scene, absent: int) -> None:
    """All brokers but one are started with an older copy; the newest records are on them."""
    restore(scene, await copied(scene))
    for broker_id in scene.cluster.broker_ids:
        if broker_id != absent:
            scene.cluster.start_broker(broker_id)


@pytest.mark.parametrize("absent", [1, 2, 3])
def test_a_replica_that_stays_away_is_awaited_for_a_limited_time(absent: int) -> None:
    """The others are as many as each acknowledged record was written to."""

    async def test(scene: Scene) -> None:
        await restored_without(scene, absent)
        await asyncio.sleep(60)  # longer than `eligible.leader.replicas.wait.ms`
        await scene.produce()
        scene.cluster.start_broker(absent)
        await scene.cluster.serving()
        await scene.check()

    in_a_cluster(test)


@pytest.mark.parametrize("how", ["an older copy", "an older leader epoch"])
def test_a_replica_that_lost_power_does_not_stand_for_what_it_acknowledged(how: str) -> None:
    """Two have the records. One of them lost them with its power, and the other is away: the third,
    which was away at the time, must not lead, although fewer than the minimum ISR are missing."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        for _ in range(2):
            await scene.restart_leader()
        kept = scene.leader()
        third, loses_power = (b for b in cluster.broker_ids if b != kept)
        copy = await copied(scene, absent=third)
        before = state.partition_states(cluster)[TP].state
        for broker_id in (kept, loses_power):
            cluster.kill(broker_id, keep_unflushed=broker_id == kept)
        if how == "an older copy":
            restore(scene, copy)
        else:
            older = replace(before, leader_epoch=before.leader_epoch - 3)
            cluster.zookeeper.put(STATE, znodes.encode_state(older))
        cluster.start_broker(third)
        cluster.start_broker(loses_power)
        await asyncio.sleep(60)  # longer than `eligible.leader.replicas.wait.ms`
        refused = scene.events(EventKind.ELECTION_REFUSED)[-1].cause
        assert f"the replicas on [{kept}]" in refused, refused
        cluster.start_broker(kept)
        await cluster.serving()
        await scene.check()

    in_a_cluster(test)


def test_an_unclean_election_does_not_wait_for_a_replica_that_may_have_more() -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        await set_minimum(scene, 1)
        absent = next(b for b in cluster.broker_ids if b != scene.leader())
        await restored_without(scene, absent)
        await asyncio.sleep(60)  # longer than `eligible.leader.replicas.wait.ms`
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


def test_a_replica_whose_log_is_damaged_is_not_asked_over_and_over() -> None:
    """It is not in the ISR of the copy, so it could start from an empty log if that were true."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        await set_minimum(scene, 1)
        damaged = next(b for b in cluster.broker_ids if b != scene.leader())
        cluster.kill(damaged)
        await asyncio.sleep(GONE_SECONDS)
        copy = await copied(scene)
        cluster.start_broker(damaged)
        await scene.whole()
        restore(scene, copy)
        cluster.disks[damaged].flip(f"/data/{TP}/{0:020}.log", 16, 3)
        await scene.start_all()
        for _ in range(60):  # longer than `eligible.leader.replicas.wait.ms`
            await asyncio.sleep(1)
            refused = [e.broker_id for e in scene.events(EventKind.ROLE_REFUSED)]
            assert refused == [damaged] * len(refused) and 1 <= len(refused) <= 3
        election = scene.events(EventKind.ELECTION_REFUSED)[-1].cause
        assert f"the replicas on [{damaged}]" in election, election
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            assert await admin.elect_leaders("unclean", [TP]) == {TP: None}
        await scene.check()

    in_a_cluster(test)

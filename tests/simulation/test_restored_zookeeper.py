"""ZooKeeper is restored from an older copy: brokers that are restarted serve what they have.

Clients continue, no acknowledged record is lost, and all replicas agree on the leader epochs. What
more can be wrong at that time is in `test_unconfirmed_states.py`.
"""

import asyncio

import pytest
from barnabas_common.events import EventKind

from tests.support.zookeeper_scene import (
    Scene,
    in_a_cluster,
    restore,
)


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


@pytest.mark.parametrize("absent", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_what_was_proved_since_an_earlier_restore_proves_nothing_after_the_next(
    seed: int, absent: int
) -> None:
    """The broker that is away now was ahead of ZooKeeper once, and its registration says so."""

    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        copy = cluster.zookeeper.copy()
        await asyncio.sleep(15)
        restore(scene, copy)
        await scene.start_all()
        await scene.whole()
        assert all(b.membership.ahead_since is not None for b in cluster.brokers().values())
        await asyncio.sleep(15)
        cluster.kill(absent)
        copy = cluster.zookeeper.copy()  # its session lives, and it is a member of each ISR
        await asyncio.sleep(15)
        await scene.produce()
        restore(scene, copy)
        await scene.start_all()
        await scene.check()

    in_a_cluster(test, seed)


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
        restore(scene, copy)
        await scene.start_all()
        await scene.check()
        causes = [event.cause for event in scene.events(EventKind.REGISTERED_ANEW)]
        assert any("restored from an older copy" in cause for cause in causes)
        for broker in cluster.brokers().values():
            assert 0 <= broker.membership.unbroken_since <= broker.membership.broker_epoch

    in_a_cluster(test)

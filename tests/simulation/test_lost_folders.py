"""A partition's folder vanished while its broker was down.

An empty log must never take its place: neither as a leader, which would make the others truncate,
nor as a member of the ISR, which could become leader.
"""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.events import EventKind
from barnabas_controller.store import znodes
from barnabas_controller.store.config_store import topic_entity
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.loop import run

from tests.support.config_world import store_of, write_overrides, write_raw
from tests.support.delivery import History, judge
from tests.support.replicas import replicas, until_replicas
from tests.support.whole_cluster import TP, produce, read_back

CONFIG = {"auto.leader.rebalance.enable": "false"}


async def _cluster(
    replicas_at: list[int], seed: int = 5, **configs: str
) -> tuple[SimulatedCluster, History]:
    """Return a cluster with fifty acknowledged records and checkpointed high watermarks."""
    cluster = SimulatedCluster(seed, config=CONFIG)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, assignments={0: replicas_at}, configs=configs)
    history = History()
    await produce(cluster, history, range(50))
    await asyncio.sleep(6.0)
    return cluster, history


def _remove_folder(cluster: SimulatedCluster, broker_id: int) -> None:
    disk = cluster.disks[broker_id]
    disk.remove_tree(f"/data/{TP}")
    disk.sync_directory("/data")


async def _until_all_in_sync(cluster: SimulatedCluster, count: int) -> None:
    await until_replicas(
        cluster.bootstrap,
        TP,
        lambda found: any(len(each.in_sync_replicas) == count for each in found.values()),
        within=60.0,
        runtime=cluster.client_runtime("looker"),
    )


def _causes(cluster: SimulatedCluster, broker_id: int, kind: EventKind) -> list[str]:
    return [
        event.cause for event in cluster.broker(broker_id).events.since(0) if event.kind is kind
    ]


@pytest.mark.parametrize("loser", [1, 2], ids=["the leader's", "a follower's"])
def test_after_all_brokers_were_down_who_lost_its_folder_fetches_all_again(loser: int) -> None:
    """The ISR still names the replica, and every broker has just restarted."""

    async def story() -> None:
        cluster, history = await _cluster([1, 2, 3])
        for broker_id in (1, 2, 3):
            cluster.kill(broker_id)
        _remove_folder(cluster, loser)
        await asyncio.sleep(10.0)
        for broker_id in (1, 2, 3):
            cluster.start_broker(broker_id)
        await cluster.serving()
        await _until_all_in_sync(cluster, 3)
        assert _causes(cluster, loser, EventKind.REPLICA_LOST) == [
            "its folder is missing from /data; its high watermark was 50"
        ]
        found = await replicas(cluster.bootstrap, TP, runtime=cluster.client_runtime("looker"))
        assert [found[broker_id].log_end_offset for broker_id in (1, 2, 3)] == [50, 50, 50]
        await produce(cluster, history, range(50, 60))
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
        assert len(history.acked) == 60

    run(story(), seed=5, max_time=300.0)


def test_a_bounce_that_no_one_saw_is_no_different() -> None:
    """The leader is back without the folder before its session ends."""

    async def story() -> None:
        cluster, history = await _cluster([1, 2, 3])
        cluster.kill(1)
        _remove_folder(cluster, 1)
        cluster.start_broker(1)
        await cluster.serving()
        await _until_all_in_sync(cluster, 3)
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    run(story(), seed=6, max_time=300.0)


@pytest.mark.parametrize("brokers", [[1], [2], [1, 2, 3]], ids=["leader", "follower", "all"])
def test_who_cannot_tell_the_topic_of_its_log_fetches_all_again(brokers: list[int]) -> None:
    """`partition.metadata` is malformed on the last of the brokers that were down."""

    async def story() -> None:
        cluster, history = await _cluster([1, 2, 3])
        for broker_id in brokers:
            cluster.kill(broker_id)
        cluster.disks[brokers[-1]].write_file(f"/data/{TP}/partition.metadata", b"version: 0\n")
        for broker_id in brokers:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await _until_all_in_sync(cluster, 3)
        (lost,) = _causes(cluster, brokers[-1], EventKind.REPLICA_LOST)
        (recovered,) = _causes(cluster, brokers[-1], EventKind.LOG_RECOVERED)
        assert "its topic is unknown" in lost and lost in recovered
        await produce(cluster, history, range(50, 60))
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
        assert len(history.acked) == 60

    run(story(), seed=7, max_time=300.0)


@pytest.mark.parametrize("brokers", [[1], [2], [1, 2, 3]], ids=["leader", "follower", "all"])
def test_a_log_of_another_topic_is_set_aside_and_all_is_fetched_again(brokers: list[int]) -> None:
    """As it is after a bit of `partition.metadata` changed, or after the topic's znodes were
    removed by hand and the topic was created again."""

    async def story() -> None:
        cluster, history = await _cluster([1, 2, 3])
        for broker_id in brokers:
            cluster.kill(broker_id)
        disk = cluster.disks[brokers[-1]]
        other = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
        disk.write_file(f"/data/{TP}/partition.metadata", other)
        for broker_id in brokers:
            cluster.start_broker(broker_id)
        await cluster.serving()
        async with asyncio.timeout(60.0):
            while not _causes(cluster, brokers[-1], EventKind.REPLICA_STRAY):
                await asyncio.sleep(0.1)
        await _until_all_in_sync(cluster, 3)
        (stray,) = _causes(cluster, brokers[-1], EventKind.REPLICA_STRAY)
        assert "topic id AAAAAAAAAAAAAAAAAAAAAQ" in stray
        (folder,) = [name for name in disk.list("/data") if name.endswith("-stray")]
        assert disk.read_file(f"/data/{folder}/partition.metadata") == other
        await produce(cluster, history, range(50, 60))
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
        assert len(history.acked) == 60
        cluster.kill(brokers[-1])
        cluster.start_broker(brokers[-1])
        await cluster.serving()
        await _until_all_in_sync(cluster, 3)
        assert disk.is_directory(f"/data/{folder}")

    run(story(), seed=9, max_time=300.0)


def test_the_only_log_of_an_unknown_topic_stays_as_it_is_until_its_topic_is_deleted() -> None:
    async def story() -> None:
        cluster, history = await _cluster([1])
        metadata = f"/data/{TP}/partition.metadata"
        for damage in (b"", None):
            cluster.kill(1)
            if damage is None:  # what the operator does: the id is that of the topic of now
                cluster.disks[1].remove(metadata)
            else:
                cluster.disks[1].write_file(metadata, damage)
            cluster.start_broker(1)
            await cluster.serving()
            if damage is not None:
                await asyncio.sleep(60.0)
                found = await replicas(
                    cluster.bootstrap, TP, runtime=cluster.client_runtime("looker")
                )
                assert found == {}
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
        cluster.kill(1)
        cluster.disks[1].write_file(metadata, b"?")
        cluster.start_broker(1)
        await cluster.serving()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.delete_topics([TP.topic])
        async with asyncio.timeout(60.0):
            while cluster.disks[1].exists(f"/data/{TP}"):
                await asyncio.sleep(0.1)

    run(story(), seed=8, max_time=600.0)


def test_where_no_other_has_the_data_the_partition_stays_offline_and_says_why() -> None:
    """Another restart does not change that."""

    async def story() -> None:
        cluster, _ = await _cluster([1])
        for _ in range(2):
            cluster.kill(1)
            _remove_folder(cluster, 1)
            await asyncio.sleep(10.0)
            cluster.start_broker(1)
            await cluster.serving()
            await asyncio.sleep(20.0)
            assert _causes(cluster, 1, EventKind.REPLICA_LOST)
            refusals = _causes(cluster, 1, EventKind.REPLICA_OFFLINE)
            assert 1 <= len(refusals) <= 4, "it does not ask for ever"
            async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("a")) as admin:
                (partition,) = (await admin.describe_topic(TP.topic)).partitions
            assert partition.leader_id == -1
            assert not cluster.disks[1].exists(f"/data/{TP}")

    run(story(), seed=7, max_time=300.0)


def test_who_cannot_begin_again_does_not_ask_forever() -> None:
    """Its topic's settings cannot be understood; once repaired, it fetches everything again."""

    async def story() -> None:
        cluster, _ = await _cluster([1, 2, 3])
        store, entity = await store_of(cluster), topic_entity(TP.topic)
        await write_raw(store, entity, b"nonsense")
        cluster.kill(2)
        _remove_folder(cluster, 2)
        await asyncio.sleep(10.0)
        cluster.start_broker(2)
        await cluster.serving()
        await asyncio.sleep(20.0)
        assert 1 <= len(_causes(cluster, 2, EventKind.ROLE_REFUSED)) <= 8
        await write_overrides(store, entity, {})
        await _until_all_in_sync(cluster, 3)

    run(story(), seed=10, max_time=300.0)


def test_a_topic_deleted_and_made_again_is_not_taken_for_a_lost_one() -> None:
    async def story() -> None:
        cluster, _ = await _cluster([1, 2, 3])
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.delete_topics([TP.topic])
            await asyncio.sleep(0.5)
            cluster.kill(1)
            cluster.start_broker(1)
            await cluster.serving()
            await admin.create_topic(TP.topic, assignments={0: [1, 2, 3]})
        history = History()
        await produce(cluster, history, range(10))
        assert not _causes(cluster, 1, EventKind.REPLICA_LOST)
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    run(story(), seed=8, max_time=300.0)


def test_where_the_last_member_lost_its_folder_who_left_with_everything_leads() -> None:
    """It returned first, so that the others, which have every record, had left the ISR."""

    async def story() -> None:
        cluster, history = await _cluster([1, 2, 3], **{"min.insync.replicas": "2"})
        for broker_id in (1, 2, 3):
            cluster.kill(broker_id)
        _remove_folder(cluster, 1)
        await asyncio.sleep(10.0)
        cluster.start_broker(1)
        await cluster.serving()
        await asyncio.sleep(5.0)
        for broker_id in (2, 3):
            cluster.start_broker(broker_id)
        await cluster.serving()
        await _until_all_in_sync(cluster, 3)
        assert _causes(cluster, 1, EventKind.REPLICA_LOST)
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    run(story(), seed=9, max_time=300.0)


def test_the_recovery_point_of_a_lost_log_is_not_that_of_its_successor() -> None:
    """The new log is not flushed, and its broker is killed before the next checkpoint."""

    async def story() -> None:
        cluster, _ = await _cluster([1, 2, 3])
        checker = Invariants(cluster)
        checker.install()
        log = cluster.broker(2).log_manager.get(TP)
        assert log is not None
        await cluster.broker(2).log_manager.flush(log)
        await cluster.broker(2).log_manager.checkpoint_all_offsets()
        cluster.kill(2)
        _remove_folder(cluster, 2)
        await asyncio.sleep(10.0)
        cluster.start_broker(2)
        await cluster.serving()
        await _until_all_in_sync(cluster, 3)
        cluster.kill(2)
        cluster.start_broker(2)
        await cluster.serving()
        log = cluster.broker(2).log_manager.get(TP)
        assert log is not None and (log.log_end_offset, log.recovery_point) == (50, 0)
        await cluster.broker(2).log_manager.checkpoint_all_offsets()

    run(story(), seed=5, max_time=300.0)


@pytest.mark.parametrize("running", [[], [1], [1, 2]], ids=["neither", "the loser", "both"])
def test_a_topic_is_deleted_although_the_only_member_of_the_isr_lost_its_folder(
    running: list[int],
) -> None:
    """Its replica refuses every role. Those brokers are running when the deletion is requested."""

    async def story() -> None:
        cluster, _ = await _cluster([1, 2])
        cluster.kill(2)
        await _until_all_in_sync(cluster, 1)
        cluster.kill(1)
        _remove_folder(cluster, 1)
        await asyncio.sleep(10.0)
        for broker_id in running:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await asyncio.sleep(5.0)
        store = await store_of(cluster)
        await store.ensure(znodes.delete_topic_path(TP.topic))
        for broker_id in {1, 2} - set(running):
            cluster.start_broker(broker_id)
        async with asyncio.timeout(60.0):
            while await store.exists(znodes.topic_path(TP.topic)) is not None:
                await asyncio.sleep(0.1)
        assert TP not in cluster.broker(1).log_manager.lost

    run(story(), seed=5, max_time=300.0)

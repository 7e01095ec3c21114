"""Settings change while the cluster runs: which broker has them when, and why bad ones are not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, Producer
from barnabas_broker.config import keys
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.config_store import (
    BROKER_DEFAULT,
    ConfigNotifications,
    entity_path,
    topic_entity,
)
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import CONFIG_CHANGES
from barnabas_controller.zookeeper.session import Stat, Watch
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.config_world import (
    announce,
    events_of,
    log_of,
    store_of,
    until,
    until_everywhere,
    write_overrides,
    write_raw,
)
from tests.support.control_world import ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)
ENTITY = topic_entity("flights")

Story = Callable[[SimulatedCluster, Store], Awaitable[None]]


def run_story(story: Story, configs: dict[str, str] | None = None, seed: int = 1) -> None:
    """Play a scenario on three brokers and a topic with a replica on each of them."""

    async def main() -> None:
        cluster = SimulatedCluster(seed)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(
                "flights", partitions=1, replication_factor=3, configs=configs or {}
            )
        await until_everywhere(cluster, FLIGHTS, lambda config: True)
        await story(cluster, await store_of(cluster))

    run(main(), seed=seed, max_time=3600)


def test_a_topics_change_reaches_the_open_logs_of_every_broker() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        await write_overrides(store, ENTITY, {"retention.ms": "5000", "segment.bytes": "1000"})
        await until_everywhere(
            cluster, FLIGHTS, lambda c: (c.retention_ms, c.segment_bytes) == (5000, 1000)
        )
        await write_overrides(store, ENTITY, {})
        await until_everywhere(cluster, FLIGHTS, lambda c: c.retention_ms == 604800000)
        (change, _) = events_of(cluster, 1, EventKind.CONFIG_CHANGED)
        assert change.details["overrides"] == "retention.ms=5000, segment.bytes=1000"

    run_story(story)


def test_the_order_is_topic_then_broker_then_cluster_default_then_file_then_default() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        def in_force(*expected: int) -> bool:
            return (
                tuple(log_of(cluster, b, FLIGHTS).config.max_message_bytes for b in (1, 2, 3))
                == expected
            )

        assert in_force(1048588, 1048588, 1048588)
        await write_overrides(store, BROKER_DEFAULT, {"message.max.bytes": "2000"})
        await until(lambda: in_force(2000, 2000, 2000))
        await write_overrides(store, "brokers/2", {"message.max.bytes": "3000"})
        await until(lambda: in_force(2000, 3000, 2000))
        await write_overrides(store, ENTITY, {"max.message.bytes": "4000"})
        await until(lambda: in_force(4000, 4000, 4000))
        await write_overrides(store, ENTITY, {})
        await write_overrides(store, "brokers/2", {})
        await until(lambda: in_force(2000, 2000, 2000))

    run_story(story)


def test_a_change_missed_for_want_of_a_session_is_read_with_the_next_one() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        cluster.part_from_zookeeper(3)
        await write_overrides(store, ENTITY, {"retention.ms": "5000"})
        await write_overrides(store, BROKER_DEFAULT, {"message.max.bytes": "2000"})
        for name in await store.children(CONFIG_CHANGES):  # expired: no notification is left
            await store.remove(f"{CONFIG_CHANGES}/{name}")
        await asyncio.sleep(20)
        assert log_of(cluster, 3, FLIGHTS).config.retention_ms == 604800000
        cluster.reunite_with_zookeeper(3)
        await until(lambda: log_of(cluster, 3, FLIGHTS).config.retention_ms == 5000)
        await until(lambda: cluster.broker(3).config[keys.MESSAGE_MAX_BYTES] == 2000)

    run_story(story)


def test_a_broker_that_starts_has_the_dynamic_settings_before_it_serves() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        await write_overrides(store, BROKER_DEFAULT, {"message.max.bytes": "2000"})
        cluster.kill(2)
        cluster.start_broker(2)
        await cluster.serving()
        assert cluster.broker(2).config[keys.MESSAGE_MAX_BYTES] == 2000

    run_story(story)


def test_settings_that_cannot_be_understood_leave_the_last_good_ones_in_force() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        await write_overrides(store, ENTITY, {"retention.ms": "5000"})
        await write_overrides(store, BROKER_DEFAULT, {"message.max.bytes": "2000"})
        await until_everywhere(cluster, FLIGHTS, lambda c: c.retention_ms == 5000)
        for data in (b"{", b"", b"7", b'{"config":[]}', b'{"config":{"retention.ms":7}}'):
            if data:
                await write_raw(store, ENTITY, data)
                await announce(store, ENTITY)
                await write_raw(store, BROKER_DEFAULT, data)
                await announce(store, BROKER_DEFAULT)
        await write_overrides(store, ENTITY, {"retention.ms": "soon"})
        await write_overrides(store, BROKER_DEFAULT, {"broker.id": "7"})
        await asyncio.sleep(5)
        assert log_of(cluster, 2, FLIGHTS).config.retention_ms == 5000
        assert cluster.broker(2).config[keys.MESSAGE_MAX_BYTES] == 2000
        malformed = events_of(cluster, 2, EventKind.ZNODE_MALFORMED)
        assert {e.details["path"] for e in malformed} == {
            "/config/topics/flights",
            "/config/brokers/<default>",
        }
        refused = {e.cause for e in events_of(cluster, 2, EventKind.CONFIG_REFUSED)}
        assert refused == {
            "retention.ms='soon': must be a whole number",
            "broker.id cannot be changed while the broker runs",
        }

    run_story(story)


def test_a_mended_znode_is_read_without_a_notification() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        await write_raw(store, ENTITY, b"nonsense")
        await announce(store, ENTITY)
        await asyncio.sleep(1)
        await write_raw(store, ENTITY, b'{"version":1,"config":{"retention.ms":"5000"}}')
        await until_everywhere(cluster, FLIGHTS, lambda c: c.retention_ms == 5000)

    run_story(story)


def test_a_znode_that_is_mended_before_it_is_watched_is_read_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exists, mended = Store.exists, False

    async def story(cluster: SimulatedCluster, store: Store) -> None:
        async def mend_first(self: Store, path: str, watch: Watch | None = None) -> Stat | None:
            nonlocal mended
            if path == entity_path(ENTITY) and watch is not None and not mended:
                mended = True
                await write_raw(store, ENTITY, b'{"version":1,"config":{"retention.ms":"5000"}}')
            return await exists(self, path, watch)

        monkeypatch.setattr(Store, "exists", mend_first)
        await write_raw(store, ENTITY, b"nonsense")
        await announce(store, ENTITY)
        await until_everywhere(cluster, FLIGHTS, lambda c: c.retention_ms == 5000)

    run_story(story)


def test_nonsense_among_the_notifications_does_no_harm() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        for name, data in {
            "config_change_0000000900": b"nonsense",
            "config_change_0000000901": b'{"version":3}',
            "config_change_0000000902": b"",
            "config_change_0000000903": b'{"version":2,"entity_path":"topics/"}',
            "config_change_0000000910": b'{"version":2,"entity_path":"topics/a//b"}',
            "config_change_0000000911": b'{"version":2,"entity_path":"topics/../brokers"}',
            "config_change_0000000912": b'{"version":2,"entity_path":"topics/a\\u0000"}',
            "config_change_0000000904": b'{"version":2,"entity_path":"users/tom"}',
            "what": b"is this",
        }.items():
            await store.ensure(f"{CONFIG_CHANGES}/{name}", data)
        await write_raw(store, ENTITY, b'{"version":1,"config":{"retention.ms":"5000"}}')
        old_style = b'{"version":1,"entity_type":"topics","entity_name":"flights"}'
        await store.ensure(f"{CONFIG_CHANGES}/config_change_0000000920", old_style)
        await until_everywhere(cluster, FLIGHTS, lambda c: c.retention_ms == 5000)
        assert len(events_of(cluster, 1, EventKind.ZNODE_MALFORMED)) == 7

    run_story(story)


def test_each_notification_is_read_once_and_in_order() -> None:
    async def test(world: ControlWorld) -> None:
        notifications = ConfigNotifications(world.store)
        for entity in ("topics/b", "topics/a"):
            await announce(world.store, entity)
        assert await notifications.news(lambda _: None) == ["topics/b", "topics/a"]
        assert await notifications.news(lambda _: None) == []
        await announce(world.store, "topics/c")
        assert await notifications.news(lambda _: None) == ["topics/c"]

    run_world(test)


def test_notifications_are_read_although_their_directory_was_deleted_and_counts_from_zero() -> None:
    async def test(world: ControlWorld) -> None:
        notifications = ConfigNotifications(world.store)
        for entity in ("topics/a", "topics/b", "topics/c"):
            await announce(world.store, entity)
        assert len(await notifications.news(lambda _: None)) == 3
        for name in await world.store.children(CONFIG_CHANGES):
            await world.store.remove(f"{CONFIG_CHANGES}/{name}")
        await world.store.remove(CONFIG_CHANGES)
        assert await notifications.news(lambda _: None) == []
        await announce(world.store, "topics/d")
        assert await notifications.news(lambda _: None) == ["topics/d"]
        assert await notifications.news(lambda _: None) == []

    run_world(test)


def test_notifications_are_taken_away_after_fifteen_minutes() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        await write_overrides(store, ENTITY, {"retention.ms": "1000"})
        await asyncio.sleep(14 * 60)
        await write_overrides(store, ENTITY, {"retention.ms": "2000"})
        await asyncio.sleep(2 * 60)
        assert len(await store.children(CONFIG_CHANGES)) == 2
        await write_overrides(store, ENTITY, {"retention.ms": "3000"})
        await asyncio.sleep(5)
        assert len(await store.children(CONFIG_CHANGES)) == 2

    run_story(story)


def test_brokers_whose_clocks_are_fast_take_no_notification_away_early() -> None:
    """Another broker may not have read it yet."""

    async def story(cluster: SimulatedCluster, store: Store) -> None:
        cluster.zookeeper._wall_ms = lambda: cluster.clock.wall_ms() - 3_600_000
        for ms in ("1000", "2000"):
            await write_overrides(store, ENTITY, {"retention.ms": ms})
            await asyncio.sleep(60)
        assert len(await store.children(CONFIG_CHANGES)) == 2

    run_story(story)


def test_a_lower_minimum_frees_the_high_watermark_at_once() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        for broker_id in (2, 3):
            cluster.kill(broker_id)
        async with asyncio.timeout(60):
            while await in_sync(store) != {1}:
                await asyncio.sleep(0.1)
        async with Producer(
            cluster.bootstrap, acks=1, runtime=cluster.client_runtime("producer")
        ) as producer:
            await producer.send("flights", b"one")
        log = log_of(cluster, 1, FLIGHTS)
        assert (log.high_watermark, log.log_end_offset) == (0, 1)
        await write_overrides(store, ENTITY, {"min.insync.replicas": "1"})
        await until(lambda: log.high_watermark == 1, seconds=0.5)

    run_story(story, {"min.insync.replicas": "2"})


def test_a_log_whose_settings_cannot_be_read_is_left_out_until_they_can() -> None:
    """Broker 2 restarts and finds malformed settings: no replica may lead with unknown settings."""

    async def story(cluster: SimulatedCluster, store: Store) -> None:
        await write_raw(store, ENTITY, b"nonsense")
        cluster.kill(2)
        cluster.start_broker(2)
        await cluster.serving()
        await asyncio.sleep(10)
        assert cluster.broker(2).replica_manager.partitions.get(FLIGHTS) is None
        assert (await in_sync(store)) == {1, 3}
        await write_overrides(store, ENTITY, {"retention.ms": "5000"})
        await until_everywhere(cluster, FLIGHTS, lambda c: c.retention_ms == 5000)

        async with asyncio.timeout(60):
            while await in_sync(store) != {1, 2, 3}:
                await asyncio.sleep(0.1)

    run_story(story)


async def in_sync(store: Store) -> set[int]:
    state = await store.state(FLIGHTS)
    assert state is not None
    return set(state.isr)


def test_a_cluster_that_comes_back_to_settings_it_cannot_read_waits_for_them() -> None:
    async def story(cluster: SimulatedCluster, store: Store) -> None:
        await write_raw(store, ENTITY, b"nonsense")
        for broker_id in (1, 2, 3):
            cluster.kill(broker_id)
        for broker_id in (1, 2, 3):
            cluster.start_broker(broker_id)
        await cluster.serving()
        await asyncio.sleep(20)
        await write_overrides(store, ENTITY, {"retention.ms": "5000"})
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            async with asyncio.timeout(60):
                while (await admin.describe_topic("flights")).partitions[0].leader_id < 0:
                    await asyncio.sleep(0.1)
        await until_everywhere(cluster, FLIGHTS, lambda c: c.retention_ms == 5000)

    run_story(story)


@pytest.mark.parametrize(
    "data",
    [b"nonsense", b'{"version":1,"config":{"min.insync.replicas":"2","num.io.threads":"8"}}'],
    ids=["malformed", "a key of Kafka that is not built"],
)
def test_a_broker_that_does_not_know_the_settings_of_all_brokers_waits_for_them(
    data: bytes,
) -> None:
    """By its own default it would acknowledge `acks=all` alone; the other brokers have the last
    valid settings, and so the controller counts on a minimum of 2."""

    async def story(cluster: SimulatedCluster, store: Store) -> None:
        good = {"min.insync.replicas": "2"}
        await write_overrides(store, BROKER_DEFAULT, good)
        await until_everywhere(cluster, FLIGHTS, lambda c: c.min_insync_replicas == 2)
        await write_raw(store, BROKER_DEFAULT, data)
        await announce(store, BROKER_DEFAULT)
        cluster.kill(2)
        cluster.start_broker(2)
        await cluster.serving()
        await asyncio.sleep(10)  # long enough to take its roles
        assert cluster.broker(2).replica_manager.partitions.get(FLIGHTS) is None
        await write_overrides(store, BROKER_DEFAULT, good)
        await until_everywhere(cluster, FLIGHTS, lambda c: c.min_insync_replicas == 2)
        async with asyncio.timeout(60):
            while await in_sync(store) != {1, 2, 3}:
                await asyncio.sleep(0.1)

    run_story(story)

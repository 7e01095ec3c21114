"""Settings changed by the admin client: their effect, their sources, and what is refused."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, ConfigResource, Producer
from barnabas_broker.config import keys
from barnabas_common.errors import (
    BarnabasError,
    InvalidConfigError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.config_store import change_overrides, entity_path, topic_entity
from barnabas_controller.zookeeper.session import WatchEvent
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.config_world import log_of, store_of, until, until_everywhere, write_raw

FLIGHTS = TopicPartition("flights", 0)
TOPIC = ConfigResource.topic("flights")
EVERYBODY = ConfigResource.all_brokers()

Story = Callable[[SimulatedCluster, Admin], Awaitable[None]]


def run_story(story: Story, seed: int = 1) -> None:
    async def main() -> None:
        cluster = SimulatedCluster(seed)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("flights", partitions=1, replication_factor=3)
            await until_everywhere(cluster, FLIGHTS, lambda config: True)
            await story(cluster, admin)

    run(main(), seed=seed, max_time=3600)


async def source_of(admin: Admin, name: str) -> tuple[str, str]:
    found = {c.name: c for c in await admin.describe_configs("flights")}
    return found[name].value, found[name].source


def test_min_insync_replicas_applies_to_the_next_batch() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        runtime = cluster.client_runtime("producer")
        async with Producer(cluster.bootstrap, runtime=runtime, retries=0) as producer:
            await producer.send_and_wait("flights", b"1")
            await admin.incremental_alter_configs(TOPIC, {"min.insync.replicas": "3"})
            await until_everywhere(cluster, FLIGHTS, lambda c: c.min_insync_replicas == 3)
            await producer.send_and_wait("flights", b"2")
            leader = (await admin.describe_topic("flights")).partitions[0].leader_id
            follower = next(b for b in cluster.running_brokers if b != leader)
            await cluster.stop_broker(follower)
            with pytest.raises(BarnabasError, match="NOT_ENOUGH_REPLICAS"):
                await producer.send_and_wait("flights", b"3")
            await admin.incremental_alter_configs(TOPIC, {"min.insync.replicas": None})
            await until_everywhere(cluster, FLIGHTS, lambda c: c.min_insync_replicas == 1)
            await producer.send_and_wait("flights", b"4")

    run_story(story)


def test_a_change_applies_although_its_broker_dies_as_soon_as_it_is_written() -> None:
    """The leader would use the old `min.insync.replicas`, and the controller the new one."""

    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        observer, dying = await store_of(cluster), await store_of(cluster, "dying")
        entity = topic_entity("flights")
        change = change_overrides(dying, entity, lambda _: {"min.insync.replicas": "2"})
        broker = asyncio.ensure_future(change)

        def die(_: WatchEvent) -> None:
            broker.cancel()

        await observer.exists(entity_path(entity), die)
        await until_everywhere(cluster, FLIGHTS, lambda c: c.min_insync_replicas == 2)

    run_story(story)


def test_max_message_bytes_and_segment_bytes_apply_to_open_logs() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        runtime = cluster.client_runtime("producer")
        async with Producer(cluster.bootstrap, runtime=runtime) as producer:
            await producer.send_and_wait("flights", b"x" * 500)
            changes = {"max.message.bytes": "400", "segment.bytes": "300"}
            await admin.incremental_alter_configs(TOPIC, changes)
            await until_everywhere(cluster, FLIGHTS, lambda c: c.max_message_bytes == 400)
            with pytest.raises(BarnabasError, match="MESSAGE_TOO_LARGE"):
                await producer.send_and_wait("flights", b"x" * 500)
            for _ in range(3):
                await producer.send_and_wait("flights", b"x" * 200)
        assert len(log_of(cluster, 1, FLIGHTS).segment_offsets) >= 3

    run_story(story)


def test_retention_applies_to_open_logs() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        await admin.incremental_alter_configs(TOPIC, {"segment.bytes": "300"})
        await until_everywhere(cluster, FLIGHTS, lambda c: c.segment_bytes == 300)
        runtime = cluster.client_runtime("producer")
        async with Producer(cluster.bootstrap, runtime=runtime) as producer:
            for _ in range(5):
                await producer.send_and_wait("flights", b"x" * 200)
        log = log_of(cluster, 1, FLIGHTS)
        await asyncio.sleep(700)
        assert log.log_start_offset == 0
        await admin.incremental_alter_configs(EVERYBODY, {"log.retention.ms": "1000"})
        await until(lambda: log.log_start_offset > 0, seconds=700)

    run_story(story)


def test_every_value_is_told_with_its_source() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        assert await source_of(admin, "retention.bytes") == ("-1", "default")
        await admin.incremental_alter_configs(EVERYBODY, {"log.retention.bytes": "7"})
        await until(
            lambda: all(cluster.broker(b).config[keys.LOG_RETENTION_BYTES] == 7 for b in (1, 2, 3))
        )
        assert await source_of(admin, "retention.bytes") == ("7", "cluster-default")
        for broker_id in (1, 2, 3):
            resource = ConfigResource.broker(broker_id)
            await admin.incremental_alter_configs(resource, {"log.retention.bytes": "8"})
        await until(
            lambda: all(cluster.broker(b).config[keys.LOG_RETENTION_BYTES] == 8 for b in (1, 2, 3))
        )
        assert await source_of(admin, "retention.bytes") == ("8", "broker-dynamic")
        await admin.incremental_alter_configs(TOPIC, {"retention.bytes": "9"})
        assert await source_of(admin, "retention.bytes") == ("9", "topic")
        brokers = {c.name: c for c in await admin.describe_broker_configs(2)}
        assert brokers["log.retention.bytes"].source == "broker-dynamic"
        assert brokers["broker.id"].source == "static"
        assert (brokers["broker.id"].is_dynamic, brokers["log.segment.bytes"].is_dynamic) == (
            False,
            True,
        )
        (default,) = await admin.describe_cluster_default_configs()
        assert (default.name, default.value) == ("log.retention.bytes", "7")

    run_story(story)


def test_two_changes_at_once_both_stay() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        names = ["retention.ms", "retention.bytes", "segment.bytes", "flush.messages"]
        await asyncio.gather(
            *(admin.incremental_alter_configs(TOPIC, {name: "77"}) for name in names)
        )
        assert {name: await source_of(admin, name) for name in names} == dict.fromkeys(
            names, ("77", "topic")
        )

    run_story(story)


def test_what_is_refused_is_refused_with_kafkas_code_and_changes_nothing() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        alter = admin.incremental_alter_configs
        with pytest.raises(UnknownTopicOrPartitionError):
            await alter(ConfigResource.topic("nowhere"), {"retention.ms": "1"})
        with pytest.raises(UnknownTopicOrPartitionError):
            await alter(ConfigResource.topic("../brokers"), {"retention.ms": "1"})
        for name in (".", "..", "a\0", "x" * 1_100_000):
            with pytest.raises(UnknownTopicOrPartitionError):
                await alter(ConfigResource.topic(name), {"retention.ms": "1"})
        many = ",".join(f"{partition}:1" for partition in range(150_000))
        with pytest.raises(InvalidRequestError, match="over ZooKeeper's limit"):
            await alter(TOPIC, {"leader.replication.throttled.replicas": many})
        with pytest.raises(InvalidConfigError, match="whole number"):
            await alter(TOPIC, {"segment.bytes": "99", "retention.ms": "soon"})
        with pytest.raises(InvalidConfigError, match="unknown config"):
            await alter(TOPIC, {"no.such.key": "1"})
        with pytest.raises(InvalidConfigError, match="cannot be changed"):
            await alter(EVERYBODY, {"log.dirs": "/tmp"})
        with pytest.raises(InvalidRequestError, match="not a list"):
            await alter(TOPIC, append={"retention.ms": "1"})
        with pytest.raises(InvalidRequestError, match="no changes"):
            await alter(TOPIC)
        with pytest.raises(InvalidRequestError, match="no such kind"):
            await alter(ConfigResource("user", "tom"), {"retention.ms": "1"})
        with pytest.raises(InvalidConfigError, match="must be a list of compact, delete"):
            await alter(TOPIC, append={"cleanup.policy": "remove"})
        await alter(TOPIC, {"retention.ms": "1"}, validate_only=True)
        assert await source_of(admin, "segment.bytes") == ("1073741824", "default")
        assert await source_of(admin, "retention.ms") == ("604800000", "default")

    run_story(story)


def test_settings_that_cannot_be_understood_are_neither_described_nor_changed() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        store = await store_of(cluster)
        await write_raw(store, "topics/flights", b"nonsense")
        with pytest.raises(InvalidConfigError, match="/config/topics/flights: not JSON"):
            await admin.describe_configs("flights")
        with pytest.raises(InvalidConfigError, match="/config/topics/flights: not JSON"):
            await admin.incremental_alter_configs(TOPIC, {"retention.ms": "1"})
        found = await store.get(entity_path("topics/flights"))
        assert found is not None and found[0] == b"nonsense"

    run_story(story)

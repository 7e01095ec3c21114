"""Dynamic configuration in a simulated cluster: changing it as a broker would, and reading it."""

import asyncio
from collections.abc import Callable, Mapping

from barnabas_broker.config import LogConfig
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.events import Event, EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.config_store import entity_path, notification
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import encode_config
from barnabas_simulator.cluster import SimulatedCluster


async def store_of(cluster: SimulatedCluster, name: str = "test") -> Store:
    """Return a store on a ZooKeeper session of the test's own."""
    return Store(await cluster.zookeeper.client(name).connect(600_000, 1000))


async def write_overrides(store: Store, entity: str, overrides: Mapping[str, str]) -> None:
    """Write an entity's znode and the notification, as Kafka's tools do."""
    await write_raw(store, entity, encode_config(overrides))
    await announce(store, entity)


async def announce(store: Store, entity: str) -> None:
    """Write the notification alone."""
    note = notification(entity)
    await store.session.create(note.path, note.data, sequential=True)


async def write_raw(store: Store, entity: str, data: bytes) -> None:
    """Write any bytes into an entity's znode, without a notification."""
    await store.put(entity_path(entity), data)


def log_of(cluster: SimulatedCluster, broker_id: int, partition: TopicPartition) -> UnifiedLog:
    """Return a broker's open log of a partition; fails if there is none."""
    log = cluster.broker(broker_id).log_manager.get(partition)
    assert log is not None
    return log


async def until_everywhere(
    cluster: SimulatedCluster, partition: TopicPartition, condition: Callable[[LogConfig], bool]
) -> None:
    """Wait until the settings of the partition's logs satisfy the condition on all brokers."""
    await until(
        lambda: all(
            (log := cluster.broker(b).log_manager.get(partition)) is not None
            and condition(log.config)
            for b in cluster.running_brokers
        )
    )


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for the condition in virtual time."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.05)


def events_of(cluster: SimulatedCluster, broker_id: int, kind: EventKind) -> list[Event]:
    return [e for e in cluster.broker(broker_id).events.since(0) if e.kind is kind]

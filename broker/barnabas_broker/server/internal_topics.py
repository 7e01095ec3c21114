"""Reads what the coordinators must know of their topics from ZooKeeper."""

import asyncio

from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import ZooKeeperError

from barnabas_broker.coordinator.internal_topic import TopicShape

_READ_SECONDS = 5.0


async def shape_of(topic: str, store: Store | None) -> TopicShape | None:
    """The topic's id and number of partitions; None without an answer, or without the topic."""
    if store is None:
        return None
    try:
        async with asyncio.timeout(_READ_SECONDS):
            node = await store.topic(topic)
    except (ZooKeeperError, TimeoutError):
        return None
    return None if node is None else TopicShape(node.topic_id or "", len(node.partitions))

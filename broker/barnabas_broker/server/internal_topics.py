"""Reads what the coordinators must know of topics from ZooKeeper."""

import asyncio

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
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


async def may_exist(partition: TopicPartition, store: Store | None) -> bool:
    """Whether ZooKeeper has a partition that the metadata lacks, and that is not being deleted.

    Also True without an answer, and if the topic's znode is malformed.
    """
    topic = partition.topic
    if store is None:
        return True
    try:
        async with asyncio.timeout(_READ_SECONDS):
            if await store.exists(znodes.topic_path(topic)) is None:
                return False
            if await store.exists(znodes.delete_topic_path(topic)) is not None:
                return False
            node = await store.topic(topic)
    except (ZooKeeperError, TimeoutError):
        return True
    return node is None or partition.partition in node.partitions

"""How many partitions an internal topic has: which of them holds a key depends on it.

The count is that of the topic's znode, as in Kafka. A broker's metadata may lack partitions whose
state no controller can believe; a count of those would send every group to another partition.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from barnabas_broker.replica.metadata_cache import MetadataCache


class TopicShape(NamedTuple):
    """What the topic's znode says; `topic_id` is empty if it has none."""

    topic_id: str
    partition_count: int


ReadShape = Callable[[str], Awaitable[TopicShape | None]]
"""Reads the znode of a topic; None if it does not exist, or cannot be read now."""


class InternalTopic:
    """The count never changes while the topic has the same id: clients cannot let it grow."""

    def __init__(self, name: str, cache: MetadataCache, read: ReadShape) -> None:
        self.name = name
        self._cache = cache
        self._read = read
        self._shape: TopicShape | None = None
        self._reading = asyncio.Lock()

    @property
    def exists(self) -> bool:
        return self._cache.contains(self.name)

    @property
    def partition_count(self) -> int:
        """0 while the topic or its count is unknown to this broker."""
        shape = self._shape
        return shape.partition_count if shape is not None and self._is_current(shape) else 0

    def _is_current(self, shape: TopicShape) -> bool:
        """Whether the topic still has the id that was read with its count."""
        return self.exists and self._cache.topic_id(self.name) == shape.topic_id

    async def learned_partition_count(self) -> int:
        """The count, read if it is unknown; 0 if that was not possible."""
        if not self.partition_count and self.exists:
            await self.learn()
        return self.partition_count

    async def learn(self) -> bool:
        """Read the count unless it is known; False if that was not possible."""
        async with self._reading:
            shape = self._shape
            if shape is None or (self.exists and not self._is_current(shape)):
                self._shape = await self._read(self.name)
            return self._shape is not None

"""Offsets in ZooKeeper, as the consumers of Kafka 0.8 kept them.

    /consumers/<group>/offsets/<topic>/<partition>    the offset as decimal text

Neither metadata nor a leader epoch is kept, and the last writer wins: ZooKeeper knew no generation
of a group.
"""

from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.requests import in_chunks, until_answered
from barnabas_controller.zookeeper.session import NoNode, NotEmpty

CONSUMERS = "/consumers"


class StoredOffset(NamedTuple):
    """A partition and its offset."""

    partition: TopicPartition
    offset: int


class ConsumerOffsets:
    """Group ids and topics must be legal in a path; every method may raise a ZooKeeperError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, group_id: str, partition: TopicPartition, offset: int) -> None:
        await self._store.put(offset_path(group_id, partition), str(offset).encode())

    async def get(self, group_id: str, partition: TopicPartition) -> int | None:
        """None without a znode; one that holds no number is reported, and taken for none."""
        path = offset_path(group_id, partition)
        return await self._store.read(path, lambda data, _: _decode(path, data))

    async def all(self, group_id: str) -> list[StoredOffset]:
        """Everything the group has committed, sorted."""
        topics = await self._children(offsets_path(group_id))
        keys = [
            TopicPartition(topic, int(name))
            for topic in topics
            for name in await self._children(f"{offsets_path(group_id)}/{topic}")
            if name.isascii() and name.isdigit()
        ]
        offsets = await in_chunks(lambda key: self.get(group_id, key), sorted(keys))
        return [
            StoredOffset(key, offset)
            for key, offset in zip(sorted(keys), offsets, strict=True)
            if offset is not None
        ]

    async def groups(self) -> list[str]:
        """The groups that have a znode, with offsets or without."""
        return await self._children(CONSUMERS)

    async def has_members(self, group_id: str) -> bool:
        """Whether a consumer of Kafka 0.8 is registered in the group."""
        return bool(await self._children(f"{CONSUMERS}/{group_id}/ids"))

    async def delete(self, group_id: str) -> None:
        """Remove the group's znode with everything below it."""
        await self._delete(f"{CONSUMERS}/{group_id}")

    async def _delete(self, path: str) -> None:
        while True:
            for name in await self._children(path):
                await self._delete(f"{path}/{name}")
            try:
                await self._store.remove(path)
            except NotEmpty:  # a commit came between
                continue
            return

    async def _children(self, path: str) -> list[str]:
        try:
            return sorted(await until_answered(lambda: self._store.session.children(path)))
        except NoNode:
            return []


def offsets_path(group_id: str) -> str:
    return f"{CONSUMERS}/{group_id}/offsets"


def offset_path(group_id: str, partition: TopicPartition) -> str:
    return f"{offsets_path(group_id)}/{partition.topic}/{partition.partition}"


def _decode(path: str, data: bytes) -> int:
    try:
        return int(data.decode("ascii"))
    except ValueError as error:
        raise MalformedZnode(path, f"no offset: {data[:40]!r}") from error

"""The partitions of an internal topic that this broker coordinates: those it leads and has read.

A partition is loading from the moment this broker leads it until its log has been read, and owned
after that. A load that a newer leader epoch has overtaken is dropped.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from barnabas_common.errors import CorruptMessageError, KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.record.batch import BatchHeader
from barnabas_common.record.reader import Record
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.coordinator.partition_log import PartitionLog

_RETRY_SECONDS = 1.0


class Loaded(Protocol):
    """What the records of one partition say. `unreadable` has the offset and the fault of each
    record that was left out."""

    unreadable: list[tuple[int, str]]

    def take_batch(self, header: BatchHeader, records: Sequence[Record]) -> None:
        """The next batch, in the order of the log; a marker of a transaction is a batch too."""
        ...


L = TypeVar("L", bound=Loaded)


class OwnedPartitions(ABC, Generic[L]):
    """Listens to the roles of `topic` (a `RoleListener`); `what` names its contents in events.

    `serves_only_committed`: a partition is loading until all that was read is committed, even while
    there are too few replicas for that.
    """

    serves_only_committed = False

    def __init__(
        self, topic: InternalTopic, what: str, log: PartitionLog, events: EventLog
    ) -> None:
        self.topic = topic
        self._what = what
        self._log = log
        self._events = events
        self._tasks = TaskScope(f"coordinator of {what}")
        self._owned: dict[int, int] = {}
        self._loading: dict[int, int] = {}
        self._loaded_to: dict[int, int] = {}
        self._doubted: set[int] = set()
        self._learning = False
        self._active = True

    async def close(self) -> None:
        """Coordinate nothing any more."""
        self._active = False
        for partition in [*self._owned, *self._loading]:
            self._unload(partition, "the broker stops")
        await self._tasks.close()

    @abstractmethod
    def _new_load(self) -> L:
        """What takes the records of a partition."""

    @abstractmethod
    def _take_over(self, partition: int, loaded: L) -> int:
        """The partition is owned, and this is what it says; returns how much that is."""

    @abstractmethod
    def _give_up(self, partition: int) -> int:
        """The partition is not coordinated here any more; returns how much is forgotten."""

    # ---- what is here

    def status_of_key(self, key: str) -> ErrorCode:
        """Whether requests for the key can be answered here, in Kafka's order of checks."""
        if not self._active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        count = self.topic.partition_count
        if not count:
            self.learn_soon()
            return ErrorCode.NOT_COORDINATOR
        partition = partition_of_key(key, count)
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if partition in self._owned else ErrorCode.NOT_COORDINATOR

    @property
    def is_active(self) -> bool:
        return self._active

    @property
    def is_loading(self) -> bool:
        """Whether any partition is being read."""
        return bool(self._loading)

    @property
    def owned(self) -> Mapping[int, int]:
        """The partitions that are coordinated here, and under which leader epoch."""
        return self._owned

    def _partition_for(self, key: str) -> int:
        return partition_of_key(key, self.topic.partition_count)

    def learn_soon(self) -> None:
        """Read the number of partitions in the background, unless it is known.

        Also as soon as the metadata names the topic: it must be known while ZooKeeper is away.
        """
        topic = self.topic
        if self._active and topic.exists and not topic.partition_count and not self._learning:
            self._learning = True
            self._tasks.spawn(self._learn(), "partition count")

    async def _learn(self) -> None:
        try:
            await self.topic.learn()
        finally:
            self._learning = False

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The epoch under which this broker coordinates an owned partition."""
        return self._owned[partition.partition]

    def is_load_committed(self, partition: TopicPartition) -> bool:
        """Whether what was read of an owned partition is committed."""
        end = self._loaded_to.get(partition.partition, 0)
        return self._log.is_committed(partition, self.leader_epoch(partition), end)

    # ---- roles

    def became_leader(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """Read the partition, unless this broker has led it without interruption."""
        partition = topic_partition.partition
        if not self._active:
            return
        if self._loading.get(partition) == leader_epoch:
            return
        uninterrupted = self._owned.get(partition) in (leader_epoch, leader_epoch - 1)
        if uninterrupted and partition not in self._doubted:
            self._owned[partition] = leader_epoch
            return
        self._unload(partition, f"it leads under epoch {leader_epoch}, and reads the log again")
        self._loading[partition] = leader_epoch
        self._tasks.spawn(self._load(topic_partition, leader_epoch), f"load {topic_partition}")

    def doubt(self, partition: int) -> None:
        """Another broker seems to have coordinated it: read it again under the next epoch."""
        self._doubted.add(partition)

    def became_follower(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """Another broker coordinates."""
        why = f"it follows under epoch {leader_epoch}"
        self._unload(topic_partition.partition, why)

    def stopped(self, topic_partition: TopicPartition) -> None:
        """The replica is gone."""
        self._unload(topic_partition.partition, "its replica was stopped")

    def _unload(self, partition: int, why: str) -> None:
        was_loading = self._loading.pop(partition, None)
        self._loaded_to.pop(partition, None)
        self._doubted.discard(partition)
        was_owned = self._owned.pop(partition, None)
        gone = self._give_up(partition)
        if was_owned is None and was_loading is None:
            return
        key = TopicPartition(self.topic.name, partition)
        self._events.record(EventKind.COORDINATOR_UNLOADED, why, key, **{self._what: gone})

    # ---- loading

    async def _load(self, key: TopicPartition, leader_epoch: int) -> None:
        loaded = await self._read(key, leader_epoch)
        if loaded is None:
            return
        del self._loading[key.partition]
        self._owned[key.partition] = leader_epoch
        for offset, fault in loaded.unreadable:
            cause = f"the record at offset {offset}: {fault}"
            self._events.record(EventKind.COORDINATOR_RECORD_UNREADABLE, cause, key, offset=offset)
        count = self._take_over(key.partition, loaded)
        self._events.record(
            EventKind.COORDINATOR_LOADED,
            f"it leads the partition under epoch {leader_epoch}",
            key,
            leader_epoch=leader_epoch,
            **{self._what: count},
        )

    async def _read(self, key: TopicPartition, leader_epoch: int) -> L | None:
        """Read until it succeeds; None once a change of role has overtaken this load."""
        reported = False
        while True:
            loaded, error, end = self._new_load(), None, 0
            try:
                await self.topic.learn()
                take, strict = loaded.take_batch, self.serves_only_committed
                end = await self._log.load(key, leader_epoch, take, only_committed=strict)
            except KafkaError as failure:
                error = failure
            if self._loading.get(key.partition) != leader_epoch:
                return None
            self._loaded_to[key.partition] = end
            if error is None:
                return loaded
            # As in Kafka: better some of it than none while there is no other copy.
            damaged = isinstance(error, CorruptMessageError)
            if not reported:
                then = f"its {self._what} are served as far as the log can be read"
                cause = f"{error}; {then if damaged else 'the load is repeated'}"
                self._events.record(EventKind.COORDINATOR_LOAD_FAILED, cause, key)
                reported = True
            if damaged:
                return loaded
            await asyncio.sleep(_RETRY_SECONDS)

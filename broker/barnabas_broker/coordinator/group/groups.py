"""The groups that this broker coordinates: those of the partitions it leads, once it has read them.

A partition is loading from the moment this broker leads it until its log has been read, and owned
after that. A load that a newer leader epoch has overtaken is dropped.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas_common.errors import CorruptMessageError, KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.loading import LoadedGroups
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.coordinator.partition_log import PartitionLog
from barnabas_broker.coordinator.record_fields import fits

_RETRY_SECONDS = 1.0


class Groups:
    """Listens to the roles of `__consumer_offsets` (a `RoleListener`).

    `loaded(group, deleted)` is called for each group that was read, with the partitions that were
    deleted while it was; `forgotten(group)` for each group that goes.
    """

    def __init__(
        self,
        log: PartitionLog,
        topic: InternalTopic,
        events: EventLog,
        loaded: Callable[[Group, Sequence[TopicPartition]], None],
        forgotten: Callable[[Group], None],
    ) -> None:
        self._log = log
        self.topic = topic
        self._events = events
        self._on_loaded = loaded
        self._on_forgotten = forgotten
        self._tasks = TaskScope("group coordinator")
        self._groups: dict[str, Group] = {}
        self._partitions: dict[str, int] = {}
        self._owned: dict[int, int] = {}
        self._loading: dict[int, int] = {}
        self._loaded_to: dict[int, int] = {}
        self._deleted_meanwhile: set[TopicPartition] = set()
        self._learning = False
        self._active = True

    async def close(self) -> None:
        """Coordinate nothing any more."""
        self._active = False
        for partition in [*self._owned, *self._loading]:
            self._unload(partition, "the broker stops")
        await self._tasks.close()

    # ---- which groups are here

    def status(self, group_id: str, empty_id_allowed: bool = False) -> ErrorCode:
        """Whether requests for the group can be answered here, in Kafka's order of checks."""
        if not (group_id or empty_id_allowed) or not fits(group_id):
            return ErrorCode.INVALID_GROUP_ID
        if not self._active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        count = self.topic.partition_count
        if not count:
            self._learn_soon()
            return ErrorCode.NOT_COORDINATOR
        partition = partition_of_key(group_id, count)
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
        """The partitions whose groups are coordinated here, and under which leader epoch."""
        return self._owned

    def all(self) -> list[Group]:
        return list(self._groups.values())

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def get_or_add(self, group_id: str) -> Group:
        """Add an empty group unless there is one; `status` must have been NONE."""
        group = self._groups.get(group_id)
        if group is None:
            group = Group(group_id)
            self._add(group, partition_of_key(group_id, self.topic.partition_count))
        return group

    def _learn_soon(self) -> None:
        if self.topic.exists and not self._learning:
            self._learning = True
            self._tasks.spawn(self._learn(), "partition count")

    async def _learn(self) -> None:
        try:
            await self.topic.learn()
        finally:
            self._learning = False

    def _add(self, group: Group, partition: int) -> None:
        self._groups[group.group_id] = group
        self._partitions[group.group_id] = partition

    def _drop(self, group: Group) -> None:
        del self._groups[group.group_id]
        del self._partitions[group.group_id]
        self._on_forgotten(group)

    def is_here(self, group: Group) -> bool:
        """Whether it is still the group of that name, and coordinated here."""
        return self._groups.get(group.group_id) is group

    def remove(self, group: Group, now_ms: int) -> None:
        """The group is deleted or has expired."""
        group.change_state(GroupState.DEAD, now_ms)
        self._drop(group)

    def restore(self, group: Group, partition: TopicPartition, leader_epoch: int) -> None:
        """The removal of an empty group failed: it is still in the log.

        Unless its name is in use again, or the log was read again meanwhile.
        """
        here = self._owned.get(partition.partition) == leader_epoch
        if here and group.group_id not in self._groups:
            group.state = GroupState.EMPTY
            group.pending_members.clear()
            self._add(group, partition.partition)

    def partition_of(self, group: Group) -> TopicPartition:
        """The partition that holds a group that is here."""
        return TopicPartition(GROUP_METADATA_TOPIC, self._partitions[group.group_id])

    def is_committed(self, group: Group) -> bool:
        """Whether what was read is committed, so that no later coordinator is without it."""
        key = self.partition_of(group)
        end = self._loaded_to.get(key.partition, 0)
        return self._log.is_committed(key, self.leader_epoch(key), end)

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The epoch under which this broker coordinates the groups of an owned partition."""
        return self._owned[partition.partition]

    def partitions_deleted(self, deleted: Iterable[TopicPartition]) -> None:
        """Remember them for the groups that are still being read."""
        if self._loading:
            self._deleted_meanwhile.update(deleted)

    def _forget_deleted(self) -> None:
        if not self._loading:
            self._deleted_meanwhile.clear()

    # ---- roles

    def became_leader(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """Read the partition, unless this broker has led it without interruption."""
        partition = topic_partition.partition
        if not self._active:
            return
        if self._loading.get(partition) == leader_epoch:
            return
        if self._owned.get(partition) in (leader_epoch, leader_epoch - 1):
            self._owned[partition] = leader_epoch
            return
        self._unload(partition, f"it leads under epoch {leader_epoch}, and reads the log again")
        self._loading[partition] = leader_epoch
        self._tasks.spawn(self._load(topic_partition, leader_epoch), f"load {topic_partition}")

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
        self._forget_deleted()
        if self._owned.pop(partition, None) is None and was_loading is None:
            return
        gone = [g for g in self.all() if self._partitions[g.group_id] == partition]
        for group in gone:
            group.state = GroupState.DEAD
            self._drop(group)
        key = TopicPartition(GROUP_METADATA_TOPIC, partition)
        self._events.record(EventKind.COORDINATOR_UNLOADED, why, key, groups=len(gone))

    # ---- loading

    async def _load(self, key: TopicPartition, leader_epoch: int) -> None:
        loaded = await self._read(key, leader_epoch)
        if loaded is None:
            return
        groups = loaded.groups()
        del self._loading[key.partition]
        self._owned[key.partition] = leader_epoch
        for offset, fault in loaded.unreadable:
            cause = f"the record at offset {offset}: {fault}"
            self._events.record(EventKind.COORDINATOR_RECORD_UNREADABLE, cause, key, offset=offset)
        for group in groups:
            self._add(group, key.partition)
            self._on_loaded(group, sorted(self._deleted_meanwhile))
        self._forget_deleted()
        self._events.record(
            EventKind.COORDINATOR_LOADED,
            f"it leads the partition under epoch {leader_epoch}",
            key,
            groups=len(groups),
            leader_epoch=leader_epoch,
        )

    async def _read(self, key: TopicPartition, leader_epoch: int) -> LoadedGroups | None:
        """Read until it succeeds; None once a change of role has overtaken this load."""
        reported = False
        while True:
            loaded, error, end = LoadedGroups(), None, 0
            try:
                await self.topic.learn()
                end = await self._log.load(key, leader_epoch, loaded.take)
            except KafkaError as failure:
                error = failure
            if self._loading.get(key.partition) != leader_epoch:
                return None
            self._loaded_to[key.partition] = end
            if error is None:
                return loaded
            # As in Kafka: better some groups than none while there is no other copy.
            damaged = isinstance(error, CorruptMessageError)
            if not reported:
                then = "its groups are served as far as the log can be read"
                cause = f"{error}; {then if damaged else 'the load is repeated'}"
                self._events.record(EventKind.COORDINATOR_LOAD_FAILED, cause, key)
                reported = True
            if damaged:
                return loaded
            await asyncio.sleep(_RETRY_SECONDS)

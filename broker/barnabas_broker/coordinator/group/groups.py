"""The groups that this broker coordinates: those of the partitions that it leads and has read."""

from collections.abc import Callable, Iterable, Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventLog
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.loading import LoadedGroups
from barnabas_broker.coordinator.group.open_groups import OpenGroups
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.owned_partitions import OwnedPartitions
from barnabas_broker.coordinator.partition_log import PartitionLog
from barnabas_broker.coordinator.record_fields import fits


class Groups(OwnedPartitions[LoadedGroups]):
    """By group id.

    `loaded(groups, deleted)` is called for the groups of a partition that was read, with the
    partitions that were deleted while it was; `forgotten(group)` for each group that goes.
    """

    def __init__(
        self,
        log: PartitionLog,
        topic: InternalTopic,
        events: EventLog,
        loaded: Callable[[Sequence[Group], Sequence[TopicPartition]], None],
        forgotten: Callable[[Group], None],
    ) -> None:
        super().__init__(topic, "groups", log, events)
        self._on_loaded = loaded
        self._on_forgotten = forgotten
        self.open_groups = OpenGroups()
        self._groups: dict[str, Group] = {}
        self._partitions: dict[str, int] = {}
        self._deleted_meanwhile: dict[int, set[TopicPartition]] = {}

    # ---- which groups are here

    def status(self, group_id: str, empty_id_allowed: bool = False) -> ErrorCode:
        """Whether requests for the group can be answered here, in Kafka's order of checks."""
        if not (group_id or empty_id_allowed) or not fits(group_id):
            return ErrorCode.INVALID_GROUP_ID
        return self.status_of_key(group_id)

    def all(self) -> list[Group]:
        return list(self._groups.values())

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def get_or_add(self, group_id: str) -> Group:
        """Add an empty group unless there is one; `status` must have been NONE."""
        group = self._groups.get(group_id)
        if group is None:
            group = Group(group_id)
            self._add(group, self._partition_for(group_id))
        return group

    def _add(self, group: Group, partition: int) -> None:
        self._groups[group.group_id] = group
        self._partitions[group.group_id] = partition
        self.open_groups.add(group)

    def _drop(self, group: Group) -> None:
        del self._groups[group.group_id]
        del self._partitions[group.group_id]
        self.open_groups.remove(group)
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
        return self.is_load_committed(self.partition_of(group))

    def partitions_deleted(self, deleted: Iterable[TopicPartition]) -> None:
        """Remember them for the groups that are still being read, and for no later load: a topic of
        the same name may have offsets by then."""
        for partition in self._loading:
            self._deleted_meanwhile.setdefault(partition, set()).update(deleted)

    # ---- partitions that come and go

    def _new_load(self) -> LoadedGroups:
        return LoadedGroups()

    def _take_over(self, partition: int, loaded: LoadedGroups) -> int:
        groups = loaded.groups()
        for group in groups:
            self._add(group, partition)
        self._on_loaded(groups, sorted(self._deleted_meanwhile.pop(partition, ())))
        return len(groups)

    def _give_up(self, partition: int) -> int:
        self._deleted_meanwhile.pop(partition, None)
        gone = [g for g in self.all() if self._partitions[g.group_id] == partition]
        for group in gone:
            group.state = GroupState.DEAD
            self._drop(group)
        return len(gone)

"""What the records of one partition of `__consumer_offsets` say: the groups and their offsets."""

from barnabas_common.record.reader import Record
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.committed import Commit
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.records import (
    GroupKey,
    GroupValue,
    OffsetKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
)
from barnabas_broker.coordinator.record_fields import UnreadableRecord


class LoadedGroups:
    """Takes the records in order; the latest of each key counts. `unreadable` has the offset and
    the fault of each record that was left out."""

    def __init__(self) -> None:
        self.unreadable: list[tuple[int, str]] = []
        self._groups: dict[str, GroupValue] = {}
        self._offsets: dict[str, dict[TopicPartition, Commit]] = {}

    def take(self, record: Record) -> None:
        """Take one record; one of an unknown version is left out in silence, as in Kafka."""
        try:
            if record.key is None:
                raise UnreadableRecord("no key")
            key = decode_key(record.key)
            if isinstance(key, OffsetKey):
                self._take_offset(key, record)
            elif isinstance(key, GroupKey):
                self._take_group(key, record)
        except UnreadableRecord as error:
            self.unreadable.append((record.offset, str(error)))

    def _take_offset(self, key: OffsetKey, record: Record) -> None:
        partition = TopicPartition(key.topic, key.partition)
        offsets = self._offsets.setdefault(key.group_id, {})
        if record.value is None:
            offsets.pop(partition, None)
        else:
            offsets[partition] = Commit(decode_offset_value(record.value), record.offset)

    def _take_group(self, key: GroupKey, record: Record) -> None:
        if record.value is None:
            self._groups.pop(key.group_id, None)
        else:
            self._groups[key.group_id] = decode_group_value(record.value)

    def groups(self) -> list[Group]:
        """The groups; one of which only offsets are there has never had members."""
        found = [Group.loaded(group_id, value) for group_id, value in self._groups.items()]
        found += [
            Group(group_id)
            for group_id, offsets in self._offsets.items()
            if offsets and group_id not in self._groups
        ]
        for group in found:
            group.committed.offsets.update(self._offsets.get(group.group_id, {}))
        return found

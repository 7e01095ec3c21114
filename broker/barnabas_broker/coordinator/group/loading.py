"""What the records of one partition of `__consumer_offsets` say: the groups and their offsets."""

from collections.abc import Sequence

from barnabas_common.record.batch import BatchHeader
from barnabas_common.record.reader import Record
from barnabas_common.record.transactional import commits
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.committed.committed import Commit
from barnabas_broker.coordinator.group.committed.transactional import (
    PendingCommit,
    TransactionalCommits,
)
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
        self._transactional: dict[str, TransactionalCommits] = {}
        self._groups_of: dict[int, dict[str, None]] = {}
        self._producer_id: int | None = None

    def take_batch(self, header: BatchHeader, records: Sequence[Record]) -> None:
        """Take one batch; the offsets in one of a transaction wait for the producer's marker."""
        if header.is_control:
            self._take_marker(header, commits(records[0].key))
            return
        self._producer_id = header.producer_id if header.is_transactional else None
        for record in records:
            self.take(record)
        self._producer_id = None

    def _take_marker(self, header: BatchHeader, commit: bool | None) -> None:
        if commit is None:
            return
        # There may be thousands of groups, and a marker for each commit of each producer.
        for group_id in self._groups_of.pop(header.producer_id, {}):
            waiting = self._transactional[group_id]
            offsets = self._offsets.setdefault(group_id, {})
            ended = waiting.complete(header.producer_id, commit, header.base_offset)
            for partition, pending in ended:
                known = offsets.get(partition)
                if known is None or known.at < pending.at:
                    offsets[partition] = Commit(pending.value, pending.at)

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
        waiting = self._transactional.setdefault(key.group_id, TransactionalCommits())
        if record.value is None:
            offsets.pop(partition, None)
            waiting.remove(partition, record.offset)
        elif self._producer_id is not None:
            value = decode_offset_value(record.value)
            waiting.put(self._producer_id, partition, PendingCommit(value, record.offset))
            self._groups_of.setdefault(self._producer_id, {})[key.group_id] = None
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
            if (offsets or self._transactional[group_id].partitions())
            and group_id not in self._groups
        ]
        for group in found:
            group.committed.offsets.update(self._offsets.get(group.group_id, {}))
            waiting = self._transactional.get(group.group_id)
            if waiting is not None:
                group.committed.transactional = waiting
        return found

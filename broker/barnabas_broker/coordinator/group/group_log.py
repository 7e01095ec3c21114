"""Writes groups, offsets and tombstones to the partitions of `__consumer_offsets`."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.coordinator.group.membership.context import Stored
from barnabas_broker.coordinator.group.records import (
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from barnabas_broker.coordinator.group.write_errors import commit_error, group_error
from barnabas_broker.coordinator.partition_log import KeyValue, PartitionLog, Written

_TOMBSTONES_IN_A_BATCH = 1000


class GroupLog:
    """Every method takes what it writes, and the leader epoch it is decided under, at once."""

    def __init__(self, log: PartitionLog, groups: Groups) -> None:
        self._log = log
        self._groups = groups
        self._tasks = TaskScope("group log")
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        await self._tasks.close()

    def store(self, group: Group, assignments: Mapping[str, bytes], stored: Stored) -> None:
        """Write a group with these assignments, in a task; then call `stored` with the outcome."""
        if self._closed:
            stored(ErrorCode.NOT_COORDINATOR)
            return
        value = encode_group_value(group.value(assignments))
        record = KeyValue(encode_group_key(group.group_id), value)
        self._tasks.spawn(self._store(group, record, stored), f"store {group.group_id}")

    async def _store(self, group: Group, record: KeyValue, stored: Stored) -> None:
        if not self._groups.is_here(group):
            stored(ErrorCode.NOT_COORDINATOR)
            return
        written = await self._append(self._groups.partition_of(group), [record])
        stored(group_error(written.error))

    async def commit(self, group: Group, offsets: Mapping[TopicPartition, OffsetValue]) -> Written:
        """Write offsets; the error is the client's."""
        records = [
            KeyValue(encode_offset_key(OffsetKey(group.group_id, *key)), encode_offset_value(value))
            for key, value in offsets.items()
        ]
        written = await self._append(self._groups.partition_of(group), records)
        return Written(written.base_offset, commit_error(written.error))

    async def commit_in_transaction(
        self,
        group: Group,
        producer_id: int,
        producer_epoch: int,
        offsets: Mapping[TopicPartition, OffsetValue],
    ) -> Written:
        """Write offsets as a part of the producer's open transaction; the error is the client's."""
        partition = self._groups.partition_of(group)
        written = await self._log.append_in_transaction(
            partition,
            self._groups.leader_epoch(partition),
            producer_id,
            producer_epoch,
            [
                KeyValue(
                    encode_offset_key(OffsetKey(group.group_id, *key)), encode_offset_value(value)
                )
                for key, value in offsets.items()
            ],
        )
        return Written(written.base_offset, commit_error(written.error))

    async def write_tombstones(
        self,
        group_id: str,
        partition: TopicPartition,
        offsets: Iterable[TopicPartition],
        and_group: bool = False,
    ) -> ErrorCode:
        """Remove offsets from the log, and with `and_group` the group itself."""
        keys = [encode_offset_key(OffsetKey(group_id, *key)) for key in offsets]
        if and_group:
            keys.append(encode_group_key(group_id))
        appends = [
            self._append(partition, [KeyValue(key, None) for key in chunk])
            for chunk in _chunks(keys)
        ]
        errors = [written.error for written in await asyncio.gather(*appends) if written.error]
        return commit_error(errors[0]) if errors else ErrorCode.NONE

    def _append(self, partition: TopicPartition, records: Sequence[KeyValue]) -> Awaitable[Written]:
        return self._log.append(partition, self._groups.leader_epoch(partition), records)


def _chunks(keys: Sequence[bytes]) -> Iterable[Sequence[bytes]]:
    for start in range(0, len(keys), _TOMBSTONES_IN_A_BATCH):
        yield keys[start : start + _TOMBSTONES_IN_A_BATCH]

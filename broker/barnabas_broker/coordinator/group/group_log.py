"""Writes groups, offsets and tombstones to the partitions of `__consumer_offsets`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

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
from barnabas_broker.coordinator.partition_log import (
    InTransaction,
    KeyValue,
    PartitionLog,
    Written,
)

_TOMBSTONES_IN_A_BATCH = 1000
# Far below any sensible `max.message.bytes`, whatever the length of the group id is.
_TOMBSTONE_BYTES_IN_A_BATCH = 65_536


class GroupLog:
    """Writes a group's records to its partition, in the order of the calls.

    A call fixes the records and the leader epoch of its write, so what is decided later is
    written after it.
    """

    def __init__(self, log: PartitionLog, groups: Groups) -> None:
        self._log = log
        self._groups = groups
        self._tasks = TaskScope("group log")
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        await self._tasks.close()

    def store(self, group: Group, assignments: Mapping[str, bytes], stored: Stored) -> None:
        """Write a group with these assignments; a task calls `stored` with the outcome."""
        if self._closed or not self._groups.is_here(group):
            stored(ErrorCode.NOT_COORDINATOR)
            return
        value = encode_group_value(group.value(assignments))
        record = KeyValue(encode_group_key(group.group_id), value)
        written = self._append(self._groups.partition_of(group), [record])
        self._tasks.spawn(_tell(written, stored), f"store {group.group_id}")

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
        transaction: InTransaction,
        offsets: Mapping[TopicPartition, OffsetValue],
        refusal: Callable[[], ErrorCode],
    ) -> Written:
        """Write offsets as a part of the producer's open transaction; the error is the client's.

        The coordinator of the transaction is asked first; after that, `refusal` decides.
        """
        partition = self._groups.partition_of(group)
        written = await self._log.append_in_transaction(
            partition,
            self._groups.leader_epoch(partition),
            transaction,
            [
                KeyValue(
                    encode_offset_key(OffsetKey(group.group_id, *key)), encode_offset_value(value)
                )
                for key, value in offsets.items()
            ],
            refusal,
        )
        return Written(written.base_offset, commit_error(written.error))

    async def write_tombstones(
        self,
        group_id: str,
        partition: TopicPartition,
        offsets: Sequence[TopicPartition],
        and_group: bool = False,
    ) -> tuple[ErrorCode, list[tuple[TopicPartition, int]]]:
        """Remove offsets from the log, and with `and_group` the group itself.

        The tombstones of offsets that are committed are returned, each with its place in the log.
        """
        keys = [encode_offset_key(OffsetKey(group_id, *key)) for key in offsets]
        if and_group:
            keys.append(encode_group_key(group_id))
        longest = max(map(len, keys), default=1)
        step = min(_TOMBSTONES_IN_A_BATCH, max(_TOMBSTONE_BYTES_IN_A_BATCH // longest, 1))
        starts = range(0, len(keys), step)
        appends = [
            self._append(partition, [KeyValue(key, None) for key in keys[start : start + step]])
            for start in starts
        ]
        error, removed = ErrorCode.NONE, []
        for start, append in zip(starts, appends, strict=True):
            written = await append
            if written.error:
                error = error or commit_error(written.error)
                continue
            chunk = offsets[start : start + step]
            removed += [(key, written.base_offset + n) for n, key in enumerate(chunk)]
        return error, removed

    def _append(self, partition: TopicPartition, records: Sequence[KeyValue]) -> Awaitable[Written]:
        return self._log.append(partition, self._groups.leader_epoch(partition), records)


async def _tell(written: Awaitable[Written], stored: Stored) -> None:
    stored(group_error((await written).error))

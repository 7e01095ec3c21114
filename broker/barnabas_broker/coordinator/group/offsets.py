"""OffsetCommit, OffsetFetch and OffsetDelete, and the expiry of offsets that are not needed.

An offset can be fetched once its record is committed: a coordinator that takes over has it too.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.groups import (
    CommittedOffset,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResult,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResult,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.committed.expiry import expired_offsets
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.group_log import GroupLog
from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.coordinator.group.membership.sessions import Sessions
from barnabas_broker.coordinator.group.membership.sync import check_generation
from barnabas_broker.coordinator.group.records import OffsetValue
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE
from barnabas_broker.coordinator.record_fields import fits

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class Offsets:
    """`exists` says whether a partition is in the metadata; times in ms."""

    def __init__(
        self,
        groups: Groups,
        log: GroupLog,
        sessions: Sessions,
        wall_ms: Callable[[], int],
        exists: Callable[[TopicPartition], bool],
        max_metadata_size: int,
        retention_ms: int,
        events: EventLog,
    ) -> None:
        self._groups = groups
        self._log = log
        self._sessions = sessions
        self._wall_ms = wall_ms
        self._exists = exists
        self._max_metadata_size = max_metadata_size
        self._retention_ms = retention_ms
        self._events = events

    # ---- commit

    async def commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        """One outcome per partition; partitions that do not exist fail alone."""
        outcomes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(request.partitions)
        existing = [i for i, item in enumerate(request.partitions) if self._exists(_key(item))]
        # Without any, the group is not looked at: a commit of nothing must not make one.
        refusal, group = self._admit(request) if existing else (ErrorCode.NONE, None)
        accepted: list[OffsetCommitPartition] = []
        for index in existing:
            item = request.partitions[index]
            outcomes[index] = refusal or self._check_metadata(item.committed_metadata)
            if not outcomes[index]:
                accepted.append(item)
        if accepted and group is not None:
            error = await self._write(group, accepted)
            outcomes = [outcome or error for outcome in outcomes]
        return OffsetCommitResponse(
            [
                OffsetCommitResult(item.topic, item.partition, outcome)
                for item, outcome in zip(request.partitions, outcomes, strict=True)
            ]
        )

    def _check_metadata(self, metadata: str) -> ErrorCode:
        if len(metadata) > self._max_metadata_size or not fits(metadata):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    def _admit(self, request: OffsetCommitRequest) -> tuple[ErrorCode, Group | None]:
        """The group that the sender may commit for, or why it may not."""
        status = self._groups.status(request.group_id, empty_id_allowed=True)
        if status:
            return status, None
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                return ErrorCode.ILLEGAL_GENERATION, None
            group = self._groups.get_or_add(request.group_id)
        error = check_commit(group, request)
        member = group.members.get(request.member_id)
        if not error and member is not None:
            self._sessions.extend(group, member)
        if not error and group.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS, None
        return error, group

    async def _write(self, group: Group, accepted: Sequence[OffsetCommitPartition]) -> ErrorCode:
        now_ms = self._wall_ms()
        offsets = {
            _key(item): OffsetValue(
                item.committed_offset,
                item.committed_leader_epoch,
                item.committed_metadata,
                now_ms,
            )
            for item in accepted
        }
        committed = group.committed
        committed.begin(offsets)
        try:
            written = await self._log.commit(group, offsets)
        finally:
            committed.end(offsets)
        if not written.error:
            for at, (key, value) in enumerate(offsets.items(), written.base_offset):
                committed.put(key, value, at)
        return written.error

    # ---- fetch

    def fetch(self, asked: OffsetFetchGroup, require_stable: bool) -> OffsetFetchGroupResult:
        """The offsets of one group; -1 where nothing is committed."""
        status = self._groups.status(asked.group_id, empty_id_allowed=True)
        if status:
            return OffsetFetchGroupResult(asked.group_id, status)
        group = self._groups.get(asked.group_id)
        if group is None:
            keys = [] if asked.all_topics else [(i.topic, i.partition) for i in asked.partitions]
            return OffsetFetchGroupResult(
                asked.group_id, partitions=[CommittedOffset(*key) for key in keys]
            )
        wanted = (
            sorted(group.committed.offsets)
            if asked.all_topics
            else [TopicPartition(item.topic, item.partition) for item in asked.partitions]
        )
        return OffsetFetchGroupResult(
            asked.group_id, partitions=[_fetched(group, key, require_stable) for key in wanted]
        )

    # ---- delete

    async def delete(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Remove offsets of topics to which no member of the group subscribes (KIP-496)."""
        status = self._groups.status(request.group_id)
        if status:
            return OffsetDeleteResponse(status)
        group = self._groups.get(request.group_id)
        if group is None:
            return OffsetDeleteResponse(ErrorCode.GROUP_ID_NOT_FOUND)
        subscribed: frozenset[str] | None = frozenset()
        if group.state is not GroupState.EMPTY:
            if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
                return OffsetDeleteResponse(ErrorCode.NON_EMPTY_GROUP)
            subscribed = group.subscribed_topics
        results, removed = [], []
        for item in request.partitions:
            key = TopicPartition(item.topic, item.partition)
            error = ErrorCode.NONE
            if not self._exists(key):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif subscribed is None or key.topic in subscribed:
                error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                removed.append(key)
            results.append(OffsetDeleteResult(*key, error))
        failure = await self.remove(group, removed, f"client {request.client_id!r} asked for it")
        for result in results:
            result.error_code = result.error_code or failure
        return OffsetDeleteResponse(ErrorCode.NONE, results)

    async def remove(self, group: Group, keys: Sequence[TopicPartition], cause: str) -> ErrorCode:
        """Write tombstones for offsets, and forget those whose tombstone is committed.

        An empty group goes with its last offset.
        """
        if not self._groups.is_here(group):
            return ErrorCode.NOT_COORDINATOR
        committed = group.committed
        known = committed.of(keys)
        if not known:
            return ErrorCode.NONE
        partition = self._groups.partition_of(group)
        error, removed = await self._log.write_tombstones(group.group_id, partition, known)
        for key, at in removed:
            committed.remove(key, at)
        if removed:
            self._events.record(
                EventKind.GROUP_OFFSETS_REMOVED,
                cause,
                group=group.group_id,
                partitions=[str(key) for key, _ in removed],
            )
        if not error and self._is_unused(group):
            return await self.delete_group(group, f"it has no members and no offsets: {cause}")
        return error

    def _is_unused(self, group: Group) -> bool:
        empty = group.state is GroupState.EMPTY and not group.committed.partitions()
        return empty and self._groups.is_here(group)

    async def delete_group(self, group: Group, cause: str) -> ErrorCode:
        """Remove an empty group with all its offsets, from the log too.

        It is there again, and can be deleted again, if that could not be written.
        """
        partition = self._groups.partition_of(group)
        leader_epoch = self._groups.leader_epoch(partition)
        offsets = group.committed.partitions()
        self._groups.remove(group, self._wall_ms())
        self._events.record(EventKind.GROUP_GONE, cause, group=group.group_id, offsets=len(offsets))
        # A group that never had members was never written.
        error, removed = await self._log.write_tombstones(
            group.group_id, partition, offsets, and_group=group.generation_id > 0
        )
        if error:
            for key, at in removed:
                group.committed.remove(key, at)
            self._groups.restore(group, partition, leader_epoch)
        return error

    async def partitions_deleted(
        self, groups: Sequence[Group], deleted: Sequence[TopicPartition], cause: str
    ) -> None:
        """The offsets of a deleted topic go with it, in these groups at once: later commits are of
        the next topic of that name. What cannot be written, for lack of replicas, is repeated."""
        left = [group for group in groups if group.committed.forget(deleted)]
        await asyncio.gather(*(self.remove(group, deleted, cause) for group in left))
        while left := [
            g for g in left if self._groups.is_here(g) and g.committed.awaiting_tombstone(deleted)
        ]:
            await asyncio.sleep(_RETRY_SECONDS)
            await asyncio.gather(*(self._remove_again(group, deleted, cause) for group in left))

    async def _remove_again(
        self, group: Group, deleted: Sequence[TopicPartition], cause: str
    ) -> None:
        """Not those of which a later commit is being written: a tombstone would follow that one."""
        committed = group.committed
        keys = [
            key for key in committed.awaiting_tombstone(deleted) if not committed.is_pending(key)
        ]
        await self.remove(group, keys, cause)

    # ---- expiry

    async def expire(self) -> None:
        """Remove what `offsets.retention.minutes` no longer keeps, and groups with nothing left."""
        for group in self._groups.all():
            if self._groups.is_here(group):
                await self._expire(group)

    async def _expire(self, group: Group) -> None:
        expired = expired_offsets(
            group.committed,
            group.state,
            group.protocol_type,
            group.subscribed_topics,
            group.state_timestamp_ms,
            self._wall_ms(),
            self._retention_ms,
        )
        if self._is_unused(group):
            error = await self.delete_group(group, "it has no members and no offsets")
        else:
            error = await self.remove(group, expired, "offsets.retention.minutes are over")
        if error:
            logger.warning("tombstones of group %r: %s", group.group_id, error.name)


def check_commit(group: Group, request: OffsetCommitRequest) -> ErrorCode:
    """Whether the sender may commit: a member of this generation, or anyone in an empty group."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.generation_id < 0:
        if group.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if not request.member_id and not request.group_instance_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    return check_generation(
        group, request.member_id, request.group_instance_id, request.generation_id
    )


def _fetched(group: Group, key: TopicPartition, require_stable: bool) -> CommittedOffset:
    if require_stable and group.committed.is_pending(key):
        return CommittedOffset(*key, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    commit = group.committed.offsets.get(key)
    if commit is None:
        return CommittedOffset(*key)
    value = commit.value
    return CommittedOffset(*key, value.offset, value.leader_epoch, value.metadata)


def _key(item: OffsetCommitPartition) -> TopicPartition:
    return TopicPartition(item.topic, item.partition)

"""TxnOffsetCommit, and what a transaction's end does to the offsets that it committed."""

from collections.abc import Callable, Iterable, Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    TransactionPartitionResult,
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.committed.transactional import PendingCommit
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.group_log import GroupLog
from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.coordinator.group.membership.sync import check_generation
from barnabas_broker.coordinator.group.records import OffsetValue
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.partition_log import InTransaction
from barnabas_broker.coordinator.record_fields import fits

_EPOCHS = range(2**15)


class TxnOffsets:
    """`exists` says whether a partition is in the metadata."""

    def __init__(
        self,
        groups: Groups,
        log: GroupLog,
        wall_ms: Callable[[], int],
        exists: Callable[[TopicPartition], bool],
        max_metadata_size: int,
    ) -> None:
        self._groups = groups
        self._log = log
        self._wall_ms = wall_ms
        self._exists = exists
        self._max_metadata_size = max_metadata_size

    async def commit(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        """One outcome per partition; partitions that do not exist fail alone."""
        refusal = self._groups.status(request.group_id)
        group: Group | None = None
        if not refusal and any(self._exists(_key(item)) for item in request.partitions):
            group = self._groups.get_or_add(request.group_id)
            refusal = check_txn_commit(group, request)
        outcomes = {id(item): self._outcome(item, refusal) for item in request.partitions}
        accepted = [item for item in request.partitions if not outcomes[id(item)]]
        if accepted and group is not None:
            error = await self._write(group, request, accepted)
            outcomes.update((id(item), error) for item in accepted)
        return TxnOffsetCommitResponse(
            [
                TransactionPartitionResult(item.topic, item.partition, outcomes[id(item)])
                for item in request.partitions
            ]
        )

    def _outcome(self, item: TxnOffsetCommitPartition, refusal: ErrorCode) -> ErrorCode:
        if not self._exists(_key(item)):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        metadata = item.committed_metadata
        if not refusal and (len(metadata) > self._max_metadata_size or not fits(metadata)):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return refusal

    async def _write(
        self,
        group: Group,
        request: TxnOffsetCommitRequest,
        accepted: Sequence[TxnOffsetCommitPartition],
    ) -> ErrorCode:
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
        producer_id, committed = request.producer_id, group.committed
        committed.begin_in_transaction(producer_id, offsets)
        self._groups.open_groups.review(producer_id, group)
        try:
            written = await self._log.commit_in_transaction(
                group,
                InTransaction(request.transactional_id, producer_id, request.producer_epoch),
                offsets,
                lambda: self._refusal(group, request, offsets),
            )
            if not written.error:
                for at, (key, value) in enumerate(offsets.items(), written.base_offset):
                    committed.put_in_transaction(producer_id, key, PendingCommit(value, at))
        finally:
            committed.end_in_transaction(producer_id, offsets)
            if self._groups.is_here(group):
                self._groups.open_groups.review(producer_id, group)
        return written.error

    def _refusal(
        self,
        group: Group,
        request: TxnOffsetCommitRequest,
        partitions: Iterable[TopicPartition],
    ) -> ErrorCode:
        """Why the offsets may not be written, now that the transaction is verified.

        The group may have changed meanwhile. A commit of an old generation must not follow the
        record of the next one. Kafka checks the group at this point, too. Nor must an offset of a
        deleted topic follow its tombstone: a later topic of that name would begin there.
        """
        if not self._groups.is_here(group):
            return ErrorCode.NOT_COORDINATOR
        if not all(map(self._exists, partitions)):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return check_txn_commit(group, request)

    def transaction_ended(
        self, partition: TopicPartition, producer_id: int, commit: bool, at: int
    ) -> None:
        """The producer's marker is at offset `at` of this partition of `__consumer_offsets`.

        Groups that are being read are not here yet: their load finds the marker in the log.
        """
        for group in self._groups.open_groups.of(producer_id):
            if self._groups.partition_of(group) == partition:
                group.committed.transaction_ended(producer_id, commit, at)
                self._groups.open_groups.review(producer_id, group)


def check_txn_commit(group: Group, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Whether the offsets may be committed: for a member of this generation, or without a
    member. Producers before KIP-447 did not say for whom they commit."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.producer_id < 0:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.producer_epoch not in _EPOCHS:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    named = request.member_id or request.group_instance_id
    if request.generation_id < 0 and (group.state is GroupState.EMPTY or not named):
        return ErrorCode.NONE
    return check_generation(
        group, request.member_id, request.group_instance_id, request.generation_id
    )


def _key(item: TxnOffsetCommitPartition) -> TopicPartition:
    return TopicPartition(item.topic, item.partition)

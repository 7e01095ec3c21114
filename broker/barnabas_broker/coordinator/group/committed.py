"""The offsets of one group: committed, about to be, and expired (plain data, no waiting)."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.records import NO_TIMESTAMP, OffsetValue
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE
from barnabas_broker.coordinator.group.transactional import TransactionalCommits


@dataclass(frozen=True, slots=True)
class Commit:
    """`at` is the offset of its record in `__consumer_offsets`: of two commits the later counts."""

    value: OffsetValue
    at: int


class Committed:
    """The committed offsets by partition, and which partitions have a commit in flight."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, Commit] = {}
        self._pending: dict[TopicPartition, int] = {}
        self.transactional = TransactionalCommits()

    def partitions(self) -> list[TopicPartition]:
        """Those with an offset, and those of which one is being written."""
        return sorted({*self.offsets, *self._pending, *self.transactional.partitions()})

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Commits of these partitions are being written."""
        for partition in partitions:
            self._pending[partition] = self._pending.get(partition, 0) + 1

    def end(self, partitions: Iterable[TopicPartition]) -> None:
        """The write has ended, whatever its result."""
        for partition in partitions:
            left = self._pending.get(partition, 0) - 1
            if left > 0:
                self._pending[partition] = left
            else:
                self._pending.pop(partition, None)

    def is_pending(self, partition: TopicPartition) -> bool:
        """Whether an offset is being written, or waits for the end of a transaction."""
        return partition in self._pending or self.transactional.is_pending(partition)

    def transaction_ended(self, producer_id: int, commit: bool) -> None:
        """The producer's marker is in the log: its offsets count now, or never."""
        for partition, pending in self.transactional.complete(producer_id, commit):
            self.put(partition, pending.value, pending.at)

    def put(self, partition: TopicPartition, value: OffsetValue, at: int) -> None:
        """Take a commit that is in the log at offset `at`, unless a later one was taken before."""
        known = self.offsets.get(partition)
        if known is None or known.at < at:
            self.offsets[partition] = Commit(value, at)

    def remove(self, partition: TopicPartition) -> None:
        self.offsets.pop(partition, None)
        self.transactional.remove(partition)


def expired_offsets(
    committed: Committed,
    state: GroupState,
    protocol_type: str | None,
    subscribed_topics: frozenset[str] | None,
    state_timestamp_ms: int,
    now_ms: int,
    retention_ms: int,
) -> list[TopicPartition]:
    """The offsets that no member has needed for `retention_ms` (KIP-211).

    Of an empty group, counted from when it became empty. Of a group that never had members, from
    each commit. Of a stable group of consumers, from each commit, and only topics to which no
    member subscribes. Other groups keep everything.
    """

    def old(since_ms: Callable[[OffsetValue], int], kept: Container[str]) -> list[TopicPartition]:
        return [
            partition
            for partition, commit in committed.offsets.items()
            if partition.topic not in kept
            and not committed.is_pending(partition)
            and _is_old(commit.value, since_ms(commit.value), now_ms, retention_ms)
        ]

    if protocol_type is None:
        return old(_commit_time, ())
    if state is GroupState.EMPTY:
        if state_timestamp_ms == NO_TIMESTAMP:
            return old(_commit_time, ())
        return old(lambda _: state_timestamp_ms, ())
    if (
        state is GroupState.STABLE
        and protocol_type == CONSUMER_PROTOCOL_TYPE
        and subscribed_topics is not None
    ):
        return old(_commit_time, subscribed_topics)
    return []


def _commit_time(value: OffsetValue) -> int:
    return value.commit_timestamp_ms


def _is_old(value: OffsetValue, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms

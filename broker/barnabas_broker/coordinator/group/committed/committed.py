"""The offsets of one group: committed, about to be, and expired (plain data, no waiting)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.committed.transactional import (
    PendingCommit,
    TransactionalCommits,
)
from barnabas_broker.coordinator.group.records import OffsetValue


@dataclass(frozen=True, slots=True)
class Commit:
    """`at` is the offset of its record in `__consumer_offsets`: of two commits the later counts."""

    value: OffsetValue
    at: int


class Committed:
    """The committed offsets by partition, and which partitions have a commit in flight.

    The order of the log counts: a tombstone removes what was written before it, also a commit whose
    outcome is not known yet. An offset that awaits its tombstone is not told any more.
    """

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, Commit] = {}
        self._pending: dict[TopicPartition, int] = {}
        self._removed: dict[TopicPartition, int] = {}
        self._awaiting_tombstone: set[TopicPartition] = set()
        self.transactional = TransactionalCommits()

    def partitions(self) -> list[TopicPartition]:
        """Those with an offset, and those of which one is being written, or removed."""
        waiting = self.transactional.partitions()
        return sorted({*self.offsets, *self._pending, *self._awaiting_tombstone, *waiting})

    def of(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of these partitions with an offset, or of which one is being written or removed."""
        return [
            partition
            for partition in dict.fromkeys(partitions)
            if partition in self.offsets
            or partition in self._awaiting_tombstone
            or self.is_pending(partition)
        ]

    def forget(self, partitions: Iterable[TopicPartition]) -> bool:
        """Tell no offsets of these partitions from now on, although their tombstones are still to
        be written: their topic is gone. Returns whether there are any."""
        found = self.of(partitions)
        for partition in found:
            self.offsets.pop(partition, None)
        self._awaiting_tombstone.update(found)
        return bool(found)

    def awaiting_tombstone(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of these partitions whose tombstone is still to be written. A later commit takes
        its place: the latest record counts."""
        return [partition for partition in partitions if partition in self._awaiting_tombstone]

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Commits of these partitions are being written."""
        for partition in partitions:
            self._pending[partition] = self._pending.get(partition, 0) + 1

    def end(self, partitions: Collection[TopicPartition]) -> None:
        """The write has ended, whatever its result."""
        for partition in partitions:
            left = self._pending.get(partition, 0) - 1
            if left > 0:
                self._pending[partition] = left
            else:
                self._pending.pop(partition, None)
        self._forget_tombstones(partitions)

    def is_pending(self, partition: TopicPartition) -> bool:
        """Whether an offset is being written, or waits for the end of a transaction."""
        return partition in self._pending or self.transactional.is_pending(partition)

    def begin_in_transaction(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Commits of these partitions are being written for an open transaction."""
        self.transactional.begin(producer_id, partitions)

    def put_in_transaction(
        self, producer_id: int, partition: TopicPartition, pending: PendingCommit
    ) -> None:
        """Take a commit that is in the log and waits for the producer's marker."""
        if self._removed.get(partition, -1) < pending.at:
            counts = self.transactional.put(producer_id, partition, pending)
            if counts:
                self.put(partition, pending.value, pending.at)

    def end_in_transaction(self, producer_id: int, partitions: Collection[TopicPartition]) -> None:
        """The write has ended, whatever its result."""
        self.transactional.end(producer_id, partitions)
        self._forget_tombstones(partitions)

    def transaction_ended(self, producer_id: int, commit: bool, at: int) -> None:
        """The producer's marker is in the log at offset `at`: its offsets count now, or never."""
        for partition, pending in self.transactional.complete(producer_id, commit, at):
            self.put(partition, pending.value, pending.at)
        self._forget_tombstones(list(self._removed))

    def _forget_tombstones(self, partitions: Iterable[TopicPartition]) -> None:
        """Without a write in flight, whatever comes later is later in the log too."""
        for partition in partitions:
            if not self.is_pending(partition):
                self._removed.pop(partition, None)

    def put(self, partition: TopicPartition, value: OffsetValue, at: int) -> None:
        """Take a commit that is in the log at offset `at`, unless something later was taken."""
        known = self.offsets.get(partition)
        latest = self._removed.get(partition, -1) if known is None else known.at
        if latest < at:
            self.offsets[partition] = Commit(value, at)
            self._awaiting_tombstone.discard(partition)

    def remove(self, partition: TopicPartition, at: int) -> None:
        """Take a tombstone that is in the log at offset `at`."""
        self._awaiting_tombstone.discard(partition)
        known = self.offsets.get(partition)
        if known is not None and known.at < at:
            del self.offsets[partition]
        self.transactional.remove(partition, at)
        if self.is_pending(partition):
            self._removed[partition] = max(at, self._removed.get(partition, -1))

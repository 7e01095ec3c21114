"""The offsets of one group that wait for the end of a transaction (plain data, no waiting).

A commit inside a transaction is a record in `__consumer_offsets` like any other. It counts once
the producer's marker is in the same partition, and never if that marker aborts.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.records import OffsetValue


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """`at` is the offset of its record in `__consumer_offsets`."""

    value: OffsetValue
    at: int


@dataclass(slots=True)
class _Open:
    """What one producer has committed in its open transaction, and what is being written.

    `markers`: those that came while something was being written, by their offsets; True: commit.
    """

    commits: dict[TopicPartition, PendingCommit] = field(default_factory=dict)
    in_flight: dict[TopicPartition, int] = field(default_factory=dict)
    markers: dict[int, bool] = field(default_factory=dict)


class TransactionalCommits:
    """By producer id."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}

    def begin(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Commits of these partitions are being written."""
        transaction = self._open.setdefault(producer_id, _Open())
        for partition in partitions:
            transaction.in_flight[partition] = transaction.in_flight.get(partition, 0) + 1

    def end(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """The write has ended, whatever its result."""
        transaction = self._open.get(producer_id)
        if transaction is None:
            return
        for partition in partitions:
            left = transaction.in_flight.get(partition, 0) - 1
            if left > 0:
                transaction.in_flight[partition] = left
            else:
                transaction.in_flight.pop(partition, None)
        if not transaction.in_flight:
            transaction.markers.clear()
        self._forget_if_empty(producer_id)

    def put(self, producer_id: int, partition: TopicPartition, commit: PendingCommit) -> bool:
        """The commit is in the log; of two, the later one counts.

        Both it and the marker behind it may be committed at once, and the marker be taken first.
        Returns whether that marker has committed it; it does not wait for another one.
        """
        transaction = self._open.setdefault(producer_id, _Open())
        behind = [at for at in transaction.markers if at > commit.at]
        if behind:
            return transaction.markers[min(behind)]
        known = transaction.commits.get(partition)
        if known is None or known.at < commit.at:
            transaction.commits[partition] = commit
        return False

    def complete(
        self, producer_id: int, commit: bool, at: int
    ) -> list[tuple[TopicPartition, PendingCommit]]:
        """The producer's marker is in the log at offset `at`; returns the commits that count now.

        A marker may be repeated. What lies behind it is of the next transaction.
        """
        transaction = self._open.get(producer_id)
        if transaction is None:
            return []
        if transaction.in_flight:
            transaction.markers[at] = commit
        ended = {key: one for key, one in transaction.commits.items() if one.at < at}
        for partition in ended:
            del transaction.commits[partition]
        self._forget_if_empty(producer_id)
        return sorted(ended.items()) if commit else []

    def remove(self, partition: TopicPartition, at: int) -> None:
        """Take a tombstone that is in the log at offset `at`."""
        for producer_id, transaction in list(self._open.items()):
            pending = transaction.commits.get(partition)
            if pending is not None and pending.at < at:
                del transaction.commits[partition]
                self._forget_if_empty(producer_id)

    def is_pending(self, partition: TopicPartition) -> bool:
        """Whether a transaction that may still commit has an offset of the partition (KIP-447)."""
        return any(
            partition in transaction.commits or partition in transaction.in_flight
            for transaction in self._open.values()
        )

    def producer_ids(self) -> Collection[int]:
        """The producers with a transaction that may still commit."""
        return self._open.keys()

    def partitions(self) -> set[TopicPartition]:
        return {
            partition
            for transaction in self._open.values()
            for partition in (*transaction.commits, *transaction.in_flight)
        }

    def _forget_if_empty(self, producer_id: int) -> None:
        transaction = self._open[producer_id]
        if not transaction.commits and not transaction.in_flight:
            del self._open[producer_id]

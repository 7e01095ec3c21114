"""Which markers go where, and what their outcomes mean: pure decisions.

A transaction that is decided needs a marker in each of its partitions. The partition's leader
writes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    TransactionPartition,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata

# A broker that has just become coordinator may not know all topics yet, and none whose state no
# controller can believe. If it took one of them for deleted, its partitions would never get their
# marker. So ZooKeeper is asked, but not immediately.
_DOUBTFUL_AFTER_SECONDS = 10.0


class Outcome(Enum):
    """What one marker's result means."""

    WRITTEN = "the marker is in the log, or the log needs none"
    AGAIN = "another leader, or the same one later, may write it"
    FENCED = "a newer producer or coordinator has taken over, and finishes the transaction"


_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
_NOTHING_TO_DO = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)


def outcome_of(error: ErrorCode) -> Outcome:
    """Kafka ends its process after an error that it does not expect. A missing marker blocks every
    reader, so after any other error it is sent again here."""
    if error in _NOTHING_TO_DO:
        return Outcome.WRITTEN
    return Outcome.FENCED if error in _FENCED else Outcome.AGAIN


@dataclass(slots=True)
class PendingMarkers:
    """The markers of one decided transaction that are not written yet.

    `coordinator_epoch` is asked for whenever they are sent. `unknown_since` has the partitions that
    are not in the metadata.
    """

    decided: TransactionMetadata
    coordinator_epoch: Callable[[], int]
    missing: set[TopicPartition] = field(default_factory=set)
    unknown_since: dict[TopicPartition, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, decided: TransactionMetadata, coordinator_epoch: Callable[[], int]
    ) -> "PendingMarkers":
        return cls(decided, coordinator_epoch, set(decided.partitions))

    def written(self, partition: TopicPartition) -> None:
        self.missing.discard(partition)
        self.unknown_since.pop(partition, None)

    def looked_for(self, partition: TopicPartition, exists: bool) -> None:
        """A partition that is not in the metadata may exist, or is gone."""
        if exists:
            self.unknown_since.pop(partition, None)
        else:
            self.written(partition)


class Errand(NamedTuple):
    """Markers of one transaction for one leader."""

    pending: PendingMarkers
    partitions: list[TopicPartition]


class Plan(NamedTuple):
    """`errands` by broker id. Of the others, `waiting` tells whether there are any: their
    partitions have no leader that can be reached. `doubtful` are those of them that have not been
    in the metadata for so long that they may be gone."""

    errands: dict[int, list[Errand]]
    waiting: bool
    doubtful: list[TopicPartition]


def plan(
    pending: Iterable[PendingMarkers],
    leader_of: Callable[[TopicPartition], int | None],
    now: float,
) -> Plan:
    """Send each missing marker to the partition's leader.

    `leader_of` returns -1 for a partition without a leader that can be reached, None for one that
    is not in the metadata. Times are in s.
    """
    errands: dict[int, list[Errand]] = {}
    waiting = False
    doubtful: dict[TopicPartition, None] = {}
    for item in pending:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in sorted(item.missing):
            leader = leader_of(partition)
            if leader is None:
                waiting = True
                since = item.unknown_since.setdefault(partition, now)
                if now - since >= _DOUBTFUL_AFTER_SECONDS:
                    doubtful[partition] = None
                continue
            item.unknown_since.pop(partition, None)
            if leader < 0:
                waiting = True
            else:
                by_leader.setdefault(leader, []).append(partition)
        for leader, partitions in by_leader.items():
            errands.setdefault(leader, []).append(Errand(item, partitions))
    return Plan(errands, waiting, list(doubtful))


def request_of(errands: Iterable[Errand]) -> WriteTxnMarkersRequest:
    """One marker for each transaction."""
    return WriteTxnMarkersRequest(
        [
            WritableTxnMarker(
                errand.pending.decided.producer_id,
                errand.pending.decided.producer_epoch,
                errand.pending.decided.is_commit,
                [TransactionPartition(*partition) for partition in errand.partitions],
                errand.pending.coordinator_epoch(),
                errand.pending.decided.client_version,
            )
            for errand in errands
        ]
    )


class Settled(NamedTuple):
    """`again` tells whether a marker must be sent again."""

    fenced: list[PendingMarkers]
    again: bool


def settle(errands: Iterable[Errand], response: WriteTxnMarkersResponse) -> Settled:
    """Take what the leader answered; a partition without a result is sent again."""
    fenced: list[PendingMarkers] = []
    again = False
    results = iter(response.markers)
    for errand in errands:
        answered = next(results, None)
        found = {
            TopicPartition(item.topic, item.partition): outcome_of(ErrorCode(item.error_code))
            for item in (answered.partitions if answered is not None else ())
        }
        outcomes = {key: found.get(key, Outcome.AGAIN) for key in errand.partitions}
        for partition, outcome in outcomes.items():
            if outcome is Outcome.WRITTEN:
                errand.pending.written(partition)
        if Outcome.FENCED in outcomes.values():
            fenced.append(errand.pending)
        again |= Outcome.AGAIN in outcomes.values()
    return Settled(fenced, again)

"""WriteTxnMarkers: the outcome of transactions, for the leaders of their partitions."""

from dataclasses import dataclass, field

from barnabas_common.messages.transactions.partitions import (
    TransactionPartition,
    TransactionPartitionResult,
)


@dataclass(slots=True)
class WritableTxnMarker:
    """`transaction_result` is true for a commit.

    `coordinator_epoch` is the leader epoch of the coordinator's partition. A leader refuses the
    markers of an earlier coordinator than it has seen. From `transaction_version` 2 on the epoch is
    higher than that of the transaction's batches (KIP-890), so a marker that comes late is refused
    too.
    """

    producer_id: int
    producer_epoch: int
    transaction_result: bool
    partitions: list[TransactionPartition] = field(default_factory=list)
    coordinator_epoch: int = 0
    transaction_version: int = 0


@dataclass(slots=True)
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = field(default_factory=list)


@dataclass(slots=True)
class WritableTxnMarkerResult:
    producer_id: int
    partitions: list[TransactionPartitionResult] = field(default_factory=list)


@dataclass(slots=True)
class WriteTxnMarkersResponse:
    """One result for each marker, in the order of the request."""

    markers: list[WritableTxnMarkerResult] = field(default_factory=list)

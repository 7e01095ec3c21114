"""What a producer asks its coordinator: AddPartitionsToTxn, AddOffsetsToTxn, EndTxn.

`transaction_version` is 0 for what a client of Kafka 3.9 says. With 2 the epoch rises with each
transaction (KIP-890).
"""

from dataclasses import dataclass, field

from barnabas_common.messages.producer_ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas_common.messages.transactions.partitions import (
    TransactionPartition,
    TransactionPartitionResult,
)


@dataclass(slots=True)
class AddPartitionsToTxnTransaction:
    """With `verify_only` nothing is added: a leader asks whether the partitions are part of it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool = False
    partitions: list[TransactionPartition] = field(default_factory=list)
    transaction_version: int = 0


@dataclass(slots=True)
class AddPartitionsToTxnRequest:
    """A producer sends one transaction; a leader may verify several at once."""

    transactions: list[AddPartitionsToTxnTransaction] = field(default_factory=list)


@dataclass(slots=True)
class AddPartitionsToTxnResult:
    transactional_id: str
    partitions: list[TransactionPartitionResult] = field(default_factory=list)


@dataclass(slots=True)
class AddPartitionsToTxnResponse:
    results: list[AddPartitionsToTxnResult] = field(default_factory=list)


@dataclass(slots=True)
class AddOffsetsToTxnRequest:
    """Adds the partition of `__consumer_offsets` that holds the offsets of the group."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    transaction_version: int = 0


@dataclass(slots=True)
class AddOffsetsToTxnResponse:
    error_code: int = 0


@dataclass(slots=True)
class EndTxnRequest:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    transaction_version: int = 0


@dataclass(slots=True)
class EndTxnResponse:
    """From transaction version 2 on, `producer_id` and `producer_epoch` are those to use next."""

    error_code: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH

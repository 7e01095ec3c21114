"""DescribeTransactions, ListTransactions and DescribeProducers."""

from dataclasses import dataclass, field

from barnabas_common.messages.transactions.partitions import TransactionPartition


@dataclass(slots=True)
class DescribeTransactionsRequest:
    transactional_ids: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DescribedTransaction:
    """`partitions` are those of an open transaction, or those whose markers are not written yet.

    `transaction_start_time_ms` is -1 if none has begun.
    """

    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    partitions: list[TransactionPartition] = field(default_factory=list)


@dataclass(slots=True)
class DescribeTransactionsResponse:
    transaction_states: list[DescribedTransaction] = field(default_factory=list)


@dataclass(slots=True)
class ListTransactionsRequest:
    """Filters that are empty let all through; `duration_filter` is in ms, -1 for all (KIP-994)."""

    state_filters: list[str] = field(default_factory=list)
    producer_id_filters: list[int] = field(default_factory=list)
    duration_filter: int = -1


@dataclass(slots=True)
class ListedTransaction:
    transactional_id: str
    producer_id: int
    transaction_state: str


@dataclass(slots=True)
class ListTransactionsResponse:
    error_code: int = 0
    unknown_state_filters: list[str] = field(default_factory=list)
    transaction_states: list[ListedTransaction] = field(default_factory=list)


@dataclass(slots=True)
class DescribeProducersRequest:
    partitions: list[TransactionPartition] = field(default_factory=list)


@dataclass(slots=True)
class ActiveProducer:
    """`coordinator_epoch` is that of its last marker. `current_txn_start_offset` is -1 unless a
    transaction is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int = -1
    current_txn_start_offset: int = -1


@dataclass(slots=True)
class DescribedProducers:
    topic: str
    partition: int
    error_code: int = 0
    error_message: str = ""
    active_producers: list[ActiveProducer] = field(default_factory=list)


@dataclass(slots=True)
class DescribeProducersResponse:
    partitions: list[DescribedProducers] = field(default_factory=list)

"""Transactions: what producers, coordinators, leaders and administrators say about them.

The fields are those of Kafka 3.9's newest versions; `transaction_version` stands for the versions
that Kafka 4.0 added (KIP-890).
"""

from barnabas_common.messages.transactions.admin import (
    ActiveProducer,
    DescribedProducers,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas_common.messages.transactions.markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.messages.transactions.offsets import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas_common.messages.transactions.partitions import (
    TransactionPartition,
    TransactionPartitionResult,
)
from barnabas_common.messages.transactions.producers import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
)

__all__ = [
    "ActiveProducer",
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResult",
    "AddPartitionsToTxnTransaction",
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "DescribedProducers",
    "DescribedTransaction",
    "EndTxnRequest",
    "EndTxnResponse",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "ListedTransaction",
    "TransactionPartition",
    "TransactionPartitionResult",
    "TxnOffsetCommitPartition",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "WritableTxnMarker",
    "WritableTxnMarkerResult",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]

"""DescribeTransactions and ListTransactions."""

from collections.abc import Callable

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    DescribedTransaction,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionPartition,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.transaction.metadata import Transaction
from barnabas_broker.coordinator.transaction.states import TransactionState, nothing_is_open
from barnabas_broker.coordinator.transaction.transactions import Transactions

_NAMES = {state.kafka_name for state in TransactionState}


class TransactionAdmin:
    """Answers administrators. `missing` returns the partitions without their marker, or None."""

    def __init__(
        self,
        transactions: Transactions,
        missing: Callable[[str], frozenset[TopicPartition] | None],
        wall_ms: Callable[[], int],
    ) -> None:
        self._transactions = transactions
        self._missing = missing
        self._wall_ms = wall_ms

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """One transactional id, if it is coordinated here."""
        error = self._transactions.status(transactional_id)
        if error:
            return DescribedTransaction(error, transactional_id)
        transaction = self._transactions.get(transactional_id)
        if transaction is None or _is_going(transaction):
            return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
        metadata = transaction.metadata
        missing = self._missing(transactional_id)
        partitions = metadata.partitions if missing is None else missing
        return DescribedTransaction(
            transactional_id=transactional_id,
            transaction_state=metadata.state.kafka_name,
            transaction_timeout_ms=metadata.timeout_ms,
            transaction_start_time_ms=metadata.start_ms,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            partitions=[TransactionPartition(*key) for key in sorted(partitions)],
        )

    def list(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """The transactions that are here; what is still loading is missing, and said so."""
        if not self._transactions.is_active:
            return ListTransactionsResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        loading = self._transactions.is_loading
        passes = _filter(request, self._wall_ms())
        return ListTransactionsResponse(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE,
            [name for name in request.state_filters if name not in _NAMES],
            [
                ListedTransaction(
                    transaction.transactional_id,
                    transaction.metadata.producer_id,
                    transaction.metadata.state.kafka_name,
                )
                for transaction in sorted(
                    self._transactions.all(), key=lambda item: item.transactional_id
                )
                if not _is_going(transaction) and passes(transaction)
            ],
        )


def _is_going(transaction: Transaction) -> bool:
    return transaction.pending is TransactionState.DEAD


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    """Which transactions a request is about."""
    states = frozenset(name for name in request.state_filters if name in _NAMES)
    producer_ids = frozenset(request.producer_id_filters)

    def passes(transaction: Transaction) -> bool:
        metadata = transaction.metadata
        if request.state_filters and metadata.state.kafka_name not in states:
            return False
        if producer_ids and metadata.producer_id not in producer_ids:
            return False
        if request.duration_filter < 0:
            return True
        lasts = not nothing_is_open(metadata.state)
        return lasts and now_ms - metadata.start_ms > request.duration_filter

    return passes

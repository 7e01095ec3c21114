"""The transactional ids that this broker coordinates."""

from collections.abc import Callable

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventLog
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.owned_partitions import OwnedPartitions
from barnabas_broker.coordinator.partition_log import PartitionLog
from barnabas_broker.coordinator.record_fields import fits
from barnabas_broker.coordinator.transaction.loading import LoadedTransactions
from barnabas_broker.coordinator.transaction.metadata import Transaction, TransactionMetadata


class Transactions(OwnedPartitions[LoadedTransactions]):
    """`loaded(transaction)` is called for each transactional id that was read,
    `forgotten(transaction)` for each that goes with its partition."""

    # A marker must not be written for a decision that the next coordinator may be without.
    serves_only_committed = True

    def __init__(
        self,
        log: PartitionLog,
        topic: InternalTopic,
        events: EventLog,
        loaded: Callable[[Transaction], None],
        forgotten: Callable[[Transaction], None],
    ) -> None:
        super().__init__(topic, "transactional_ids", log, events)
        self._on_loaded = loaded
        self._on_forgotten = forgotten
        self._transactions: dict[str, Transaction] = {}
        self._partitions: dict[str, int] = {}

    def status(self, transactional_id: str) -> ErrorCode:
        """Whether requests for the id can be answered here, in Kafka's order of checks."""
        if not transactional_id or not fits(transactional_id):
            return ErrorCode.INVALID_REQUEST
        error = self.status_of_key(transactional_id)
        transaction = self._transactions.get(transactional_id)
        if not error and transaction is not None and transaction.is_taken_over:
            return ErrorCode.NOT_COORDINATOR
        return error

    def all(self) -> list[Transaction]:
        return list(self._transactions.values())

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    def get_or_add(self, metadata: TransactionMetadata) -> Transaction:
        """Add a transactional id unless it is there; `status` must have been NONE."""
        known = self._transactions.get(metadata.transactional_id)
        if known is not None:
            return known
        return self._add(metadata, self._partition_for(metadata.transactional_id))

    def remove(self, transaction: Transaction) -> None:
        """It has expired."""
        del self._transactions[transaction.transactional_id]
        del self._partitions[transaction.transactional_id]

    def is_here(self, transaction: Transaction) -> bool:
        """Whether it is still the one of that name, and coordinated here without interruption."""
        return self._transactions.get(transaction.transactional_id) is transaction

    def partition_of(self, transaction: Transaction) -> TopicPartition:
        """The partition that holds a transactional id that is here."""
        partition = self._partitions[transaction.transactional_id]
        return TopicPartition(TRANSACTION_STATE_TOPIC, partition)

    def partition_if_here(self, transactional_id: str) -> TopicPartition | None:
        """The partition that holds a transactional id; None if it is not here."""
        partition = self._partitions.get(transactional_id)
        return None if partition is None else TopicPartition(TRANSACTION_STATE_TOPIC, partition)

    def taken_over(self, transaction: Transaction) -> None:
        """Another broker coordinates it: this one does not, until it becomes leader again."""
        transaction.is_taken_over = True
        self.doubt(self._partitions[transaction.transactional_id])

    def coordinator_epoch(self, transaction: Transaction) -> int:
        """Under which its markers are written; that of a later coordinator is higher."""
        return self.leader_epoch(self.partition_of(transaction))

    # ---- partitions that come and go

    def _new_load(self) -> LoadedTransactions:
        return LoadedTransactions()

    def _take_over(self, partition: int, loaded: LoadedTransactions) -> int:
        added = [self._add(metadata, partition) for metadata in loaded.metadata()]
        for transaction in added:
            self._on_loaded(transaction)
        return len(added)

    def _give_up(self, partition: int) -> int:
        gone = [
            transaction
            for transaction in self.all()
            if self._partitions[transaction.transactional_id] == partition
        ]
        for transaction in gone:
            self.remove(transaction)
            self._on_forgotten(transaction)
        return len(gone)

    def _add(self, metadata: TransactionMetadata, partition: int) -> Transaction:
        transaction = Transaction(metadata)
        self._transactions[metadata.transactional_id] = transaction
        self._partitions[metadata.transactional_id] = partition
        return transaction

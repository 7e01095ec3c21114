"""Writes transactions and tombstones to the partitions of `__transaction_state`.

A change counts once its record is committed. So no producer is told an epoch, and no marker is
sent, that a later coordinator would not know of.
"""

from barnabas_common.errors.error_code import ErrorCode

from barnabas_broker.coordinator.partition_log import KeyValue, PartitionLog
from barnabas_broker.coordinator.transaction.metadata import Transaction, TransactionMetadata
from barnabas_broker.coordinator.transaction.records import encode_key, encode_value
from barnabas_broker.coordinator.transaction.transactions import Transactions

_TOLD = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def append_error(error: ErrorCode) -> ErrorCode:
    """What a client is told when an append failed (Kafka's translations)."""
    return _TOLD.get(error, error)


class TransactionLog:
    """Every method takes what it writes, and the leader epoch it is decided under, at once."""

    def __init__(self, log: PartitionLog, transactions: Transactions) -> None:
        self._log = log
        self._transactions = transactions

    async def write(
        self, transaction: Transaction, change: TransactionMetadata, repeated: bool = False
    ) -> ErrorCode:
        """Write a change that has begun, and let it take effect once it is committed.

        After an error the transaction is as before, unless the caller repeats the write: then it
        stays pending. NOT_COORDINATOR of a transaction that is not here any more leaves it to the
        next coordinator whether the change counts.
        """
        try:
            record = KeyValue(encode_key(change.transactional_id), encode_value(change))
            error = await self._append(transaction, record)
        except BaseException:
            transaction.fail()
            raise
        if not self._transactions.is_here(transaction):
            return ErrorCode.NOT_COORDINATOR
        if not error:
            transaction.complete(change)
        elif not repeated:
            transaction.fail()
        return error

    async def remove(self, transaction: Transaction) -> ErrorCode:
        """Write a tombstone; the transactional id must stay pending until that is done."""
        return await self._append(
            transaction, KeyValue(encode_key(transaction.transactional_id), None)
        )

    async def _append(self, transaction: Transaction, record: KeyValue) -> ErrorCode:
        partition = self._transactions.partition_of(transaction)
        epoch = self._transactions.leader_epoch(partition)
        written = await self._log.append(partition, epoch, [record])
        return append_error(written.error)

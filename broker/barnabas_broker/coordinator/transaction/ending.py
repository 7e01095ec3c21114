"""What becomes of EndTxn, by Kafka's checks in their order (pure).

Kafka 3.9's clients (transaction version below 2) keep their epoch. A request is answered by the
state alone, so that an EndTxn that was delayed may end the next transaction:

    Ongoing                      the transaction is decided
    PrepareX, the same outcome   CONCURRENT_TRANSACTIONS
    CompleteX, the same outcome  NONE: taken for a retry
    anything else                INVALID_TXN_STATE

Under version 2 (KIP-890) each decision raises the epoch. So the epoch tells a retry, which still
has the old one, from a request for the next transaction. Nothing needs to be open to abort: a
producer that cannot know whether its first batch arrived asks for a higher epoch this way.

                     abort                 commit
                     retry     current     retry     current
    Empty            fenced    decided     fenced    INVALID_TXN_STATE
    CompleteAbort    NONE      decided     INVALID   INVALID_TXN_STATE
    CompleteCommit   INVALID   decided     NONE      INVALID_TXN_STATE
"""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import NO_PRODUCER_ID

from barnabas_broker.coordinator.transaction.admission import Decision, Producer
from barnabas_broker.coordinator.transaction.metadata import (
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    Transaction,
    TransactionMetadata,
    bump_supported,
    prepare_end,
)
from barnabas_broker.coordinator.transaction.states import TransactionState, is_decided

_COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}
_PREPARE = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}


def end_transaction(
    transaction: Transaction | None,
    producer: Producer,
    commit: bool,
    client_version: int,
    now_ms: int,
    new_id: int = NO_PRODUCER_ID,
) -> Decision:
    """EndTxn; `new_id` is a fresh producer id, or -1 if the caller did not expect to need one."""
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if bump_supported(client_version):
        return _end_and_bump(transaction, producer, commit, client_version, now_ms, new_id)
    metadata = transaction.metadata
    if metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING:
        return prepare_end(metadata, _PREPARE[commit], now_ms, client_version)
    if metadata.state is _COMPLETE[commit]:
        return ErrorCode.NONE
    return _still_preparing(metadata, commit)


def _still_preparing(metadata: TransactionMetadata, commit: bool) -> ErrorCode:
    if metadata.state is _PREPARE[commit]:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _end_and_bump(
    transaction: Transaction,
    producer: Producer,
    commit: bool,
    client_version: int,
    now_ms: int,
    new_id: int,
) -> Decision:
    metadata = transaction.metadata
    after_overflow = _is_retry_after_overflow(metadata, producer)
    if metadata.producer_id != producer.producer_id and not after_overflow:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_retry = after_overflow or _is_retry(metadata, producer)
    may_be_current = not is_decided(metadata.state)
    if not is_retry and not (may_be_current and producer.epoch == metadata.producer_epoch):
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if is_retry:
        if metadata.state is _COMPLETE[commit]:
            return ErrorCode.NONE
        return _still_preparing(metadata, commit)
    if commit and metadata.state is not TransactionState.ONGOING:
        return ErrorCode.INVALID_TXN_STATE
    if metadata.is_epoch_exhausted and new_id == NO_PRODUCER_ID:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    next_id = new_id if metadata.is_epoch_exhausted else NO_PRODUCER_ID
    return prepare_end(metadata, _PREPARE[commit], now_ms, client_version, next_id)


def _is_retry(metadata: TransactionMetadata, producer: Producer) -> bool:
    """Whether the request has the epoch from before the decision.

    The highest epoch without a next producer id comes from fencing, not from a decision that the
    producer asked for; its request must not be taken for a retry.
    """
    if metadata.state in (TransactionState.EMPTY, TransactionState.ONGOING):
        return False
    fenced = metadata.producer_epoch == MAX_EPOCH and metadata.next_producer_id == NO_PRODUCER_ID
    return producer.epoch + 1 == metadata.producer_epoch and not fenced


def _is_retry_after_overflow(metadata: TransactionMetadata, producer: Producer) -> bool:
    """Whether the decision gave the producer another id, because its epochs ran out."""
    return (
        metadata.state in _COMPLETE.values()
        and producer == Producer(metadata.previous_producer_id, LAST_CLIENT_EPOCH)
        and metadata.producer_epoch == 0
    )


def abort_fenced(fenced: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """The abort that ends the open transaction of a fenced producer.

    Under version 2 the epoch rises once more, so that a late EndTxn of the fenced producer is not
    taken for a retry.
    """
    return prepare_end(fenced, TransactionState.PREPARE_ABORT, now_ms, fenced.client_version)

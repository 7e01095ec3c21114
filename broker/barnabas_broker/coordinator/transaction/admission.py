"""What becomes of InitProducerId and AddPartitionsToTxn, by Kafka's checks in their order (pure).

A decision is the change to be written, or the error that the client is told. The error NONE means
that nothing has to be written.
"""

from typing import NamedTuple

from barnabas_common.errors import ProducerFencedError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas_common.prepared_transaction import NO_TIMEOUT_MS
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.transaction.metadata import (
    Transaction,
    TransactionMetadata,
    add_partitions,
    bump_supported,
    fence_producer,
    increment_epoch,
    is_exhausted,
    rotate_producer_id,
)
from barnabas_broker.coordinator.transaction.states import TransactionState, is_decided


class Producer(NamedTuple):
    """A producer as a request names it."""

    producer_id: int
    epoch: int


UNNAMED = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
"""In a request that names no producer."""


class Kept(NamedTuple):
    """The open transaction goes on: its producer id and epoch are the answer (KIP-939)."""

    metadata: TransactionMetadata


class Fence(NamedTuple):
    """The open transaction must be aborted under this metadata; then the client asks again."""

    fenced: TransactionMetadata


Decision = TransactionMetadata | ErrorCode


def granted_timeout_ms(
    asked_ms: int, two_phase: bool, max_ms: int, two_phase_enabled: bool
) -> int | ErrorCode:
    """How long the transactions of a producer may be open; those of two phases without limit."""
    if two_phase:
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return NO_TIMEOUT_MS if two_phase_enabled else refused
    return asked_ms if 0 < asked_ms <= max_ms else ErrorCode.INVALID_TRANSACTION_TIMEOUT


def init_producer_id(
    transaction: Transaction,
    producer: Producer,
    timeout_ms: int,
    now_ms: int,
    new_id: int,
    keep_prepared: bool = False,
) -> Decision | Fence | Kept:
    """`producer` is what the client has, for a higher epoch (KIP-360), or UNNAMED.

    `new_id` is a fresh producer id, or -1 if the caller did not expect to need one.
    `keep_prepared`: an open transaction that may be prepared is not aborted (KIP-939).
    """
    metadata = transaction.metadata
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if producer != UNNAMED and not _may_ask_for_more(metadata, producer):
        return ErrorCode.PRODUCER_FENCED
    if is_decided(metadata.state):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING:
        if keep_prepared and metadata.is_two_phase:
            return Kept(metadata)
        return Fence(fence_producer(transaction))
    named = producer != UNNAMED
    if metadata.is_epoch_exhausted and (not named or producer.epoch == metadata.producer_epoch):
        if new_id == NO_PRODUCER_ID:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return rotate_producer_id(metadata, new_id, timeout_ms, now_ms, record_last_epoch=named)
    try:
        return increment_epoch(metadata, timeout_ms, producer.epoch, now_ms)
    except ProducerFencedError:
        return ErrorCode.PRODUCER_FENCED


def _may_ask_for_more(metadata: TransactionMetadata, producer: Producer) -> bool:
    """Whether the id is the current one, or the one before, whose epochs ran out.

    Under the latter the answer to an earlier request may have been lost. While there is no epoch
    the transactional id is new here: it had expired.
    """
    if metadata.producer_epoch == NO_PRODUCER_EPOCH:
        return True
    if producer.producer_id == metadata.producer_id:
        return True
    return producer.producer_id == metadata.previous_producer_id and is_exhausted(producer.epoch)


def add_to_transaction(
    transaction: Transaction | None,
    producer: Producer,
    partitions: frozenset[TopicPartition],
    now_ms: int,
    client_version: int,
) -> Decision:
    """AddPartitionsToTxn and AddOffsetsToTxn."""
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    metadata = transaction.metadata
    # The answer to EndTxn may have given the producer an id that counts only when the transaction
    # is complete (KIP-890): it must wait, not fail.
    if bump_supported(client_version) and (transaction.pending or is_decided(metadata.state)):
        promised = (metadata.producer_id, metadata.next_producer_id)
        if producer.producer_id in promised:
            return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None or is_decided(metadata.state):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING and partitions <= metadata.partitions:
        return ErrorCode.NONE
    return add_partitions(metadata, partitions, now_ms, client_version)


def verify(
    transaction: Transaction | None, producer: Producer, partition: TopicPartition
) -> ErrorCode:
    """Whether a leader may append to the partition for this transaction (KIP-890).

    Without the check, a batch that arrives after the markers would begin a transaction that never
    ends. A change that is being written is not waited for: the leader checks once more when it
    appends.
    """
    if transaction is None or transaction.metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    metadata = transaction.metadata
    if metadata.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if is_decided(metadata.state):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if partition not in metadata.partitions:
        return ErrorCode.TRANSACTION_ABORTABLE
    return ErrorCode.NONE

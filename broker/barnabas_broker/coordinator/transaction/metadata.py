"""What the coordinator knows of one transactional id, and the changes it goes through.

Pure: every function returns the metadata as it is to be written (Kafka's `prepare...` methods).
The change takes effect when its record is committed, see `Transaction`.

Under transaction version 2 (KIP-890) the epoch rises when a transaction is decided: its markers
carry the higher epoch, and no late request of the old epoch can touch the next transaction.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from barnabas_common.errors import ProducerFencedError
from barnabas_common.messages.producer_ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas_common.prepared_transaction import NO_TIMEOUT_MS
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.transaction.states import (
    TransactionState,
    may_follow,
    nothing_is_open,
)

NO_TIMESTAMP = -1

MAX_EPOCH = 32_767
"""No client is ever given this epoch: it is left for fencing the last one."""
LAST_CLIENT_EPOCH = MAX_EPOCH - 1

EPOCH_BUMP_VERSION = 2
"""The first transaction version under which each transaction has an epoch of its own."""


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """One transactional id.

    `last_producer_epoch` is the epoch before the last rise that its own producer asked for: a
    request with it is a retry. `previous_producer_id` is the producer id before the last change.
    `next_producer_id` is given to the producer when the transaction is complete, because the epochs
    of the old one have run out. `client_version` is the transaction version of the client that
    changed the state last. `start_ms` is -1 before the first transaction. Times are in ms.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    last_update_ms: int = NO_TIMESTAMP
    start_ms: int = NO_TIMESTAMP
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer needs another id before its epoch can rise again."""
        return is_exhausted(self.producer_epoch)

    @property
    def is_two_phase(self) -> bool:
        """Whether the transaction may be prepared: no time ends it (KIP-939)."""
        return self.timeout_ms == NO_TIMEOUT_MS

    @property
    def is_commit(self) -> bool:
        """The outcome, in a Prepare or Complete state."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


@dataclass(slots=True)
class Transaction:
    """A transactional id at its coordinator.

    `pending` is the state that is being written; until then no other change may begin. After a
    fencing that could not be written the higher epoch counts all the same, and the next attempt
    must not raise it again (`has_failed_epoch_fence`). `is_taken_over`: its markers were
    refused as those of an earlier coordinator or producer, so another broker coordinates it now.
    """

    metadata: TransactionMetadata
    pending: TransactionState | None = field(default=None)
    has_failed_epoch_fence: bool = False
    is_taken_over: bool = False

    @property
    def transactional_id(self) -> str:
        return self.metadata.transactional_id

    def begin(self, change: TransactionMetadata) -> None:
        """The change is being written. Raises ValueError if another one is."""
        if self.pending is not None:
            raise ValueError(
                f"{self.transactional_id!r}: {change.state.kafka_name} cannot be written while"
                f" {self.pending.kafka_name} is"
            )
        self.pending = change.state

    def complete(self, change: TransactionMetadata) -> None:
        """The change is committed."""
        self.metadata = change
        self.pending = None
        if change.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
            self.has_failed_epoch_fence = False

    def fail(self) -> None:
        """The change could not be written."""
        self.pending = None

    def fencing_failed(self, fenced: TransactionMetadata) -> None:
        """The abort of a fenced producer could not be written; `fenced` is of `fence_producer`."""
        self.pending = None
        self.has_failed_epoch_fence = True
        self.metadata = fenced


def is_exhausted(producer_epoch: int) -> bool:
    """Whether no client may have a higher epoch of the same producer id."""
    return producer_epoch >= LAST_CLIENT_EPOCH


def is_known_version(client_version: int) -> bool:
    """Whether a client may have this transaction version."""
    return 0 <= client_version <= EPOCH_BUMP_VERSION


def bump_supported(client_version: int) -> bool:
    """Whether the client expects a higher epoch after each transaction."""
    return client_version >= EPOCH_BUMP_VERSION


# ---- InitProducerId


def increment_epoch(
    metadata: TransactionMetadata, timeout_ms: int, expected_epoch: int, now_ms: int
) -> TransactionMetadata:
    """The next epoch; `expected_epoch` is -1, or what the producer has (KIP-360).

    The epoch before the last rise is a retry of the request that raised it. No other producer has
    taken over in between: an InitProducerId without an expected epoch would have cleared it.

    Raises:
        ProducerFencedError: another producer has initialized the transactional id.
    """
    current, last = metadata.producer_epoch, metadata.last_producer_epoch
    if expected_epoch == NO_PRODUCER_EPOCH:
        epochs = (current + 1, NO_PRODUCER_EPOCH)
    elif expected_epoch == current or current == NO_PRODUCER_EPOCH:
        epochs = (current + 1, current)
    elif expected_epoch == last and current <= LAST_CLIENT_EPOCH:
        epochs = (current, last)
    else:
        raise ProducerFencedError(
            f"epoch {expected_epoch} of {metadata.transactional_id!r} is fenced by {current}"
        )
    return _initialized(metadata, metadata.producer_id, epochs, timeout_ms, now_ms)


def rotate_producer_id(
    metadata: TransactionMetadata,
    new_producer_id: int,
    timeout_ms: int,
    now_ms: int,
    record_last_epoch: bool,
) -> TransactionMetadata:
    """Another producer id with epoch 0, because the epochs of the old one are exhausted."""
    last = metadata.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH
    return _initialized(metadata, new_producer_id, (0, last), timeout_ms, now_ms)


def _initialized(
    metadata: TransactionMetadata,
    producer_id: int,
    epochs: tuple[int, int],
    timeout_ms: int,
    now_ms: int,
) -> TransactionMetadata:
    if epochs[0] > LAST_CLIENT_EPOCH:
        raise ValueError(f"no client may have epoch {epochs[0]} of producer id {producer_id}")
    return _to(
        metadata,
        TransactionState.EMPTY,
        now_ms,
        producer_id=producer_id,
        previous_producer_id=metadata.producer_id,
        producer_epoch=epochs[0],
        last_producer_epoch=epochs[1],
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
    )


# ---- a transaction


def add_partitions(
    metadata: TransactionMetadata,
    partitions: frozenset[TopicPartition],
    now_ms: int,
    client_version: int,
) -> TransactionMetadata:
    """The transaction with these partitions too; the first ones begin it."""
    return _to(
        metadata,
        TransactionState.ONGOING,
        now_ms,
        partitions=metadata.partitions | partitions,
        start_ms=now_ms if nothing_is_open(metadata.state) else metadata.start_ms,
        client_version=client_version,
    )


def prepare_end(
    metadata: TransactionMetadata,
    state: TransactionState,
    now_ms: int,
    client_version: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> TransactionMetadata:
    """PrepareCommit or PrepareAbort, under a higher epoch if the client expects one."""
    epochs = (metadata.producer_epoch, metadata.last_producer_epoch)
    if bump_supported(client_version):
        # The highest epoch is reached only by fencing the last one that a client may have.
        epochs = (min(metadata.producer_epoch + 1, MAX_EPOCH), metadata.producer_epoch)
    nothing_added = nothing_is_open(metadata.state)
    return _to(
        metadata,
        state,
        now_ms,
        producer_epoch=epochs[0],
        last_producer_epoch=epochs[1],
        next_producer_id=next_producer_id,
        start_ms=now_ms if nothing_added else metadata.start_ms,
        client_version=client_version,
    )


def fence_producer(transaction: Transaction) -> TransactionMetadata:
    """The metadata under the epoch that fences the producer; a PrepareAbort must follow.

    Raises ValueError unless a transaction is open.
    """
    metadata = transaction.metadata
    if not may_follow(TransactionState.PREPARE_EPOCH_FENCE, metadata.state):
        raise ValueError(f"nothing to fence in {metadata.state.kafka_name}")
    raised = min(metadata.producer_epoch + 1, MAX_EPOCH)
    epoch = metadata.producer_epoch if transaction.has_failed_epoch_fence else raised
    return replace(metadata, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)


def complete(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Every marker is written."""
    changes: dict[str, Any] = {"partitions": frozenset(), "next_producer_id": NO_PRODUCER_ID}
    if bump_supported(metadata.client_version):
        changes["previous_producer_id"] = metadata.producer_id
        if metadata.next_producer_id != NO_PRODUCER_ID:
            changes.update(producer_id=metadata.next_producer_id, producer_epoch=0)
    committed = metadata.state is TransactionState.PREPARE_COMMIT
    state = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    return _to(metadata, state, now_ms, **changes)


def _to(
    metadata: TransactionMetadata, state: TransactionState, now_ms: int, **changes: Any
) -> TransactionMetadata:
    """Raises ValueError for a change that Kafka's table does not have."""
    if not may_follow(state, metadata.state):
        raise ValueError(
            f"transaction {metadata.transactional_id!r}: {state.kafka_name} cannot follow"
            f" {metadata.state.kafka_name}"
        )
    return replace(metadata, state=state, last_update_ms=now_ms, **changes)


# ---- time


def has_timed_out(metadata: TransactionMetadata, now_ms: int) -> bool:
    """Whether an open transaction is older than its producer allows.

    One that may be prepared never is (KIP-939): a coordinator of several of them may already have
    decided to commit.
    """
    ongoing = metadata.state is TransactionState.ONGOING and not metadata.is_two_phase
    return ongoing and metadata.start_ms + metadata.timeout_ms < now_ms


def has_expired(transaction: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Whether the transactional id was not used for so long that it is forgotten."""
    metadata = transaction.metadata
    idle = nothing_is_open(metadata.state) and transaction.pending is None
    return idle and metadata.last_update_ms + expiration_ms <= now_ms

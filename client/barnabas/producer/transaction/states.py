"""The states of a transactional producer, and which may follow which: Kafka's
`TransactionManager.State`.

    UNINITIALIZED ──► INITIALIZING ──► READY ──► IN_TRANSACTION ──► COMMITTING ──► READY
                                                              ╲
                                                               ──► ABORTING ─────► READY

An error that is neither retriable nor fatal leads to ABORTABLE_ERROR, from which only an abort
leads on. From FATAL_ERROR nothing does. If the coordinator no longer knows the producer id,
INITIALIZING follows ABORTING.

Between IN_TRANSACTION and the end there may be PREPARED: everything is delivered, and any program
that knows the transaction decides (KIP-939). A producer that takes over a prepared transaction
enters it from INITIALIZING.
"""

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """The value says in words what the producer is doing."""

    UNINITIALIZED = "is not initialized: await init_transactions() first"
    INITIALIZING = "has not got its id yet: call init_transactions() again"
    READY = "has no open transaction: await begin_transaction() first"
    IN_TRANSACTION = "is in a transaction: commit or abort it first"
    PREPARED = "has prepared its transaction: commit or abort it, or close this producer"
    COMMITTING = "is committing: call commit_transaction() again"
    ABORTING = "is aborting: call abort_transaction() again"
    ABORTABLE_ERROR = "must abort the transaction: call abort_transaction()"
    FATAL_ERROR = "can only be closed"

    @property
    def drops_batches(self) -> bool:
        """Whether batches are no longer worth sending."""
        return self in (_S.ABORTABLE_ERROR, _S.ABORTING, _S.FATAL_ERROR)

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and is not complete; one that is prepared is
        left to others."""
        return self in (_S.IN_TRANSACTION, _S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR)


_S = State

# The states from which each state may be entered.
VALID_PREVIOUS: Mapping[State, frozenset[State]] = {
    _S.UNINITIALIZED: frozenset(),
    _S.INITIALIZING: frozenset({_S.UNINITIALIZED, _S.ABORTING}),
    _S.READY: frozenset({_S.INITIALIZING, _S.COMMITTING, _S.ABORTING}),
    _S.IN_TRANSACTION: frozenset({_S.READY}),
    _S.PREPARED: frozenset({_S.IN_TRANSACTION, _S.INITIALIZING}),
    _S.COMMITTING: frozenset({_S.IN_TRANSACTION, _S.PREPARED}),
    _S.ABORTING: frozenset({_S.IN_TRANSACTION, _S.PREPARED, _S.ABORTABLE_ERROR}),
    _S.ABORTABLE_ERROR: frozenset(
        {_S.IN_TRANSACTION, _S.PREPARED, _S.COMMITTING, _S.ABORTABLE_ERROR, _S.INITIALIZING}
    ),
    _S.FATAL_ERROR: frozenset(State),
}


def may_follow(state: State, previous: State) -> bool:
    """Whether a producer in `previous` may enter `state`."""
    return previous in VALID_PREVIOUS[state]

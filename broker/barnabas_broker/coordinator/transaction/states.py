"""The states of a transaction, and which may follow which (Kafka's `TransactionState`).

    Empty ───► Ongoing ───► PrepareCommit ───► CompleteCommit ───► Ongoing, Empty
                      ╲
                       ───► PrepareAbort ────► CompleteAbort ────► Ongoing, Empty

The outcome is decided once a Prepare state is in the log: from then on only markers are left to be
written. A client of transaction version 2 may also abort where nothing has begun (KIP-890), so
PrepareAbort may follow Empty and both Complete states.

PrepareEpochFence is never written. It marks a transaction whose producer is about to be fenced
until PrepareAbort is written with the higher epoch. Dead is never written either: a transactional
id that has expired is removed by a tombstone.
"""

from collections.abc import Mapping
from enum import IntEnum


class TransactionState(IntEnum):
    """The number is what is written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """As DescribeTransactions returns it: PrepareCommit."""
        return self.name.title().replace("_", "")


_OVER = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
_NOTHING_OPEN = _OVER | {TransactionState.EMPTY}

VALID_PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _NOTHING_OPEN,
    TransactionState.ONGOING: _NOTHING_OPEN | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _NOTHING_OPEN
    | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _NOTHING_OPEN,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}


def may_follow(state: TransactionState, previous: TransactionState) -> bool:
    """Whether a transaction in `previous` may become `state`."""
    return previous in VALID_PREVIOUS[state]


def is_decided(state: TransactionState) -> bool:
    """Whether the outcome is in the log, and markers may be missing."""
    return state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def nothing_is_open(state: TransactionState) -> bool:
    """Whether no transaction has begun, or the last one is complete."""
    return state in _NOTHING_OPEN

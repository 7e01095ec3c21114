"""The transactions of one partition: which are open, and where their earliest record is.

A transaction is open from its first batch to its marker. It is undecided for readers until its
marker is committed too: after another leader's election the marker might be missing. Nothing from
the first undecided record on is shown to a read_committed reader. Plain data.
"""

from collections.abc import Iterable

from barnabas_common.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    TransactionCoordinatorFencedError,
)
from barnabas_common.record.batch import BatchHeader
from barnabas_common.record.transactional import EndTransactionMarker

from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_broker.log.producers.producer_state import NONE, unpack


class TransactionTable:
    """Fed with batches and markers in the order of the log."""

    def __init__(self) -> None:
        self._ongoing: dict[int, int] = {}
        """The first offset by producer id, ascending."""
        self._unreplicated: dict[int, int] = {}
        """The marker's offset by first offset; markers ascending."""
        self.first_unstable_offset: int | None = None

    @classmethod
    def of(cls, entries: Iterable[bytes]) -> "TransactionTable":
        """The open transactions of a snapshot's producers."""
        table = cls()
        states = (unpack(entry) for entry in entries)
        first_offsets = [
            (state.current_txn_first_offset, state.producer_id)
            for state in states
            if state.current_txn_first_offset != NONE
        ]
        for first_offset, producer_id in sorted(first_offsets):
            table.begin(producer_id, first_offset)
        return table

    def begin(self, producer_id: int, first_offset: int) -> None:
        """A transactional batch is in the log; only the first one of a transaction counts."""
        if self._ongoing.setdefault(producer_id, first_offset) == first_offset:
            self._review()

    def complete(self, producer_id: int, marker_offset: int, is_aborted: bool) -> AbortedTxn | None:
        """A marker is in the log. Returns the transaction if it is aborted and has batches here."""
        first_offset = self._ongoing.pop(producer_id, None)
        if first_offset is None:
            return None
        self._unreplicated[first_offset] = marker_offset
        if not is_aborted:
            return None
        stable = next(iter(self._ongoing.values()), marker_offset + 1)
        return AbortedTxn(producer_id, first_offset, marker_offset, stable)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """The markers below are committed."""
        if not self._unreplicated:
            return
        committed = []
        for first_offset, marker_offset in self._unreplicated.items():
            if marker_offset >= high_watermark:
                break
            committed.append(first_offset)
        for first_offset in committed:
            del self._unreplicated[first_offset]
        if committed:
            self._review()

    def _review(self) -> None:
        ongoing = next(iter(self._ongoing.values()), None)
        unreplicated = min(self._unreplicated, default=None)
        offsets = [one for one in (ongoing, unreplicated) if one is not None]
        self.first_unstable_offset = min(offsets, default=None)


def has_ongoing(entry: bytes | None, producer_epoch: int) -> bool:
    """Whether a producer's batch of this epoch would be a later one of its transaction."""
    if entry is None:
        return False
    state = unpack(entry)
    return state.current_txn_first_offset != NONE and state.producer_epoch == producer_epoch


# ---- the checks of a leader


def check_epoch(entry: bytes | None, header: BatchHeader) -> None:
    """Raises InvalidProducerEpochError if a newer epoch of the producer has written."""
    if entry is not None and header.producer_epoch < unpack(entry).producer_epoch:
        raise InvalidProducerEpochError(
            f"producer id {header.producer_id} has epoch {unpack(entry).producer_epoch} here, so"
            f" epoch {header.producer_epoch} is refused"
        )


def check_coordinator_epoch(
    entry: bytes | None, header: BatchHeader, marker: EndTransactionMarker
) -> None:
    """Raises TransactionCoordinatorFencedError if a later coordinator has written a marker."""
    if entry is not None and marker.coordinator_epoch < unpack(entry).coordinator_epoch:
        raise TransactionCoordinatorFencedError(
            f"producer id {header.producer_id}: a marker of coordinator epoch"
            f" {unpack(entry).coordinator_epoch} is here, so one of {marker.coordinator_epoch} is"
            " refused"
        )


def check_in_transaction(entry: bytes | None, header: BatchHeader, is_verified: bool) -> None:
    """Raise InvalidTxnStateError if a batch must not be in, or out of, a transaction.

    Without the coordinator's word a late batch would begin a transaction that never ends
    (KIP-890).
    """
    is_open = entry is not None and unpack(entry).current_txn_first_offset != NONE
    if not header.is_transactional:
        if is_open:
            raise InvalidTxnStateError(
                f"producer id {header.producer_id} has an open transaction, but the batch is not"
                " part of it"
            )
    elif not is_verified and not has_ongoing(entry, header.producer_epoch):
        raise InvalidTxnStateError(
            f"producer id {header.producer_id}: the batch is not part of an open transaction"
        )

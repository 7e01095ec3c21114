"""What a pass has to know of producers and transactions, from the headers of the batches alone.

The records of an aborted transaction are removed, so they must not supersede others: the map leaves
them out. A marker stays until no record of its transaction is left and its delete horizon has
passed. The last batch of a producer stays, if need be without records, because it carries the
producer's last sequence number and epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_common.record.batch import BatchHeader


class Aborted(NamedTuple):
    """An aborted transaction; its marker is at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int


class LastBatch(NamedTuple):
    """`data_offset` is the last offset of the producer's last batch with records of its own, None
    if it wrote markers only."""

    data_offset: int | None
    producer_epoch: int
    timestamp: int


@dataclass
class ProducerScan:
    """Fed with every batch of a log in order.

    A producer's last batch is looked for below `stable_offset`: what is above may be truncated, and
    then the one before is the last.
    """

    stable_offset: int | None = None
    aborted: list[Aborted] = field(default_factory=list)
    last_batches: dict[int, LastBatch] = field(default_factory=dict)
    _open: dict[int, int] = field(default_factory=dict)

    def batch(self, header: BatchHeader) -> None:
        if header.producer_id < 0:
            return
        if header.is_transactional:
            self._open.setdefault(header.producer_id, header.base_offset)
        if not self._is_stable(header):
            return
        self.last_batches[header.producer_id] = LastBatch(
            header.last_offset, header.producer_epoch, header.max_timestamp
        )

    def marker(self, header: BatchHeader, is_abort: bool) -> None:
        producer_id = header.producer_id
        first = self._open.pop(producer_id, None)
        if is_abort and first is not None:
            self.aborted.append(Aborted(producer_id, first, header.last_offset))
        if not self._is_stable(header):
            return
        last = self.last_batches.get(producer_id)
        same_epoch = last is not None and last.producer_epoch == header.producer_epoch
        self.last_batches[producer_id] = LastBatch(
            last.data_offset if last is not None and same_epoch else None,
            header.producer_epoch,
            header.max_timestamp,
        )

    def _is_stable(self, header: BatchHeader) -> bool:
        return self.stable_offset is None or header.last_offset < self.stable_offset

    def active(self, now_ms: int, expiration_ms: int) -> dict[int, LastBatch]:
        """The producers that are not forgotten yet (`producer.id.expiration.ms`)."""
        return {
            producer_id: last
            for producer_id, last in self.last_batches.items()
            if now_ms - last.timestamp < expiration_ms
        }


def is_last_of_producer(header: BatchHeader, active: Mapping[int, LastBatch]) -> bool:
    """Whether the state of an active producer would be lost without this batch."""
    last = active.get(header.producer_id)
    if last is None or header.producer_id < 0:
        return False
    if last.data_offset is not None:
        return header.last_offset == last.data_offset
    return header.is_control and header.producer_epoch == last.producer_epoch


class CleanedTransactions:
    """The transactions that a pass comes across, in the order of the log."""

    def __init__(self, aborted: list[Aborted]) -> None:
        self._aborted = sorted(aborted, key=lambda one: one.first_offset)
        self._next = 0
        self._aborting: dict[int, bool] = {}  # whether any of its batches was seen
        self._committing: set[int] = set()

    def batch_is_aborted(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        if not header.is_transactional:
            return False
        self._begin_up_to(header.last_offset)
        if header.producer_id in self._aborting:
            self._aborting[header.producer_id] = True
            return True
        self._committing.add(header.producer_id)
        return False

    def marker_may_go(self, header: BatchHeader, is_abort: bool) -> bool:
        """Whether no batch of the marker's transaction is left in the log."""
        self._begin_up_to(header.last_offset)
        if is_abort:
            return not self._aborting.pop(header.producer_id, False)
        had_batches = header.producer_id in self._committing
        self._committing.discard(header.producer_id)
        return not had_batches

    def _begin_up_to(self, offset: int) -> None:
        while self._next < len(self._aborted) and self._aborted[self._next].first_offset <= offset:
            self._aborting[self._aborted[self._next].producer_id] = False
            self._next += 1

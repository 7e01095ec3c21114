"""What logs say of transactions, read by the simulator: plain data, fed batch by batch."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata
from barnabas_broker.coordinator.transaction.states import (
    TransactionState,
    is_decided,
    nothing_is_open,
)
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.logs.image import Batch


class Producer(NamedTuple):
    """A producer id with one of its epochs."""

    producer_id: int
    epoch: int


@dataclass
class Open:
    """A transaction whose marker is not in the log. `epoch` is that of its records."""

    epoch: int
    batches: list[Batch] = field(default_factory=list)

    @property
    def first_offset(self) -> int:
        return self.batches[0].base_offset


class Ended(NamedTuple):
    """A transaction with its marker. `epoch` is that of its records, `marker` the marker's."""

    epoch: int
    marker: Producer
    commit: bool
    first_offset: int
    marker_offset: int


class PartitionTransactions:
    """The transactions of one partition, in the order of its log.

    `visible`: of each offset whether readers of committed records get it, None as long as that is
    open. `markers`: all that are there, with their outcome.
    """

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        self.open: dict[int, Open] = {}
        self.ended: list[Ended] = []
        self.aborted: list[AbortedTxn] = []
        self.visible: dict[int, bool | None] = {}
        self.visible_end = 0
        self.markers: dict[Producer, bool] = {}
        for batch in batches:
            self.take(batch)

    def take(self, batch: Batch) -> Ended | None:
        """Take the next batch; returns the transaction that it ends."""
        part = batch.transaction
        if part is None:
            self._show([batch], True)
        elif part.commit is None:
            found = self.open.setdefault(part.producer_id, Open(part.producer_epoch))
            found.batches.append(batch)
            self.visible.update((o, None) for o in _offsets(batch))
        else:
            return self._end(batch, Producer(*part[:2]), part.commit)
        return None

    def _end(self, batch: Batch, marker: Producer, commit: bool) -> Ended | None:
        self.markers[marker] = commit
        found = self.open.pop(marker.producer_id, None)
        if found is None:
            return None
        self._show(found.batches, commit)
        first, last = found.first_offset, batch.last_offset
        if not commit:
            stable = min((other.first_offset for other in self.open.values()), default=last + 1)
            self.aborted.append(AbortedTxn(marker.producer_id, first, last, stable))
        ended = Ended(found.epoch, marker, commit, first, last)
        self.ended.append(ended)
        return ended

    def _show(self, batches: Iterable[Batch], commit: bool) -> None:
        for batch in batches:
            self.visible.update((o, commit) for o in _offsets(batch))
            if commit:
                self.visible_end = max(self.visible_end, batch.last_offset + 1)

    def stable_offset(self, high_watermark: int, log_start: int, markers_from: int = 0) -> int:
        """Where readers of committed records stop: at the first record of a transaction whose
        marker is not committed. Those with a marker below `markers_from` are left out."""
        undecided = [each.first_offset for each in self.open.values()]
        uncommitted = max(high_watermark, markers_from)
        undecided += [e.first_offset for e in self.ended if e.marker_offset >= uncommitted]
        first = min(undecided, default=high_watermark)
        return max(first, log_start) if first < high_watermark else high_watermark


def _offsets(batch: Batch) -> range:
    return range(batch.base_offset, batch.last_offset + 1)


@dataclass
class StateTruth:
    """What the committed records of `__transaction_state` say of one transactional id.

    `decisions`: by producer id and the epoch of the markers, with all partitions of the
    transaction. `added`: by producer, everything that was ever added. `initialized`: what
    InitProducerId has written, in order. `completed`: the decisions that are complete.

    `given_out`: what InitProducerId has answered, in order. A coordinator whose write times out
    goes on with the epoch before, although the record may be committed later.
    """

    decisions: dict[Producer, TransactionMetadata] = field(default_factory=dict)
    added: dict[Producer, set[TopicPartition]] = field(default_factory=dict)
    initialized: list[Producer] = field(default_factory=list)
    given_out: list[Producer] = field(default_factory=list)
    completed: list[TransactionMetadata] = field(default_factory=list)
    latest: TransactionMetadata | None = None

    def take(self, metadata: TransactionMetadata) -> None:
        producer = Producer(metadata.producer_id, metadata.producer_epoch)
        before, self.latest = self.latest, metadata
        if is_decided(metadata.state):
            self.decisions[producer] = metadata
        elif metadata.state is TransactionState.ONGOING:
            self.added.setdefault(producer, set()).update(metadata.partitions)
        elif metadata.state is TransactionState.EMPTY:
            self.initialized.append(producer)
        elif before is not None and nothing_is_open(metadata.state):
            self.completed.append(before)

    def fences(self, producer: Producer) -> bool:
        """Whether InitProducerId has given out a later epoch, or another id, since."""
        epochs = [known.epoch for known in self.given_out if known[0] == producer.producer_id]
        latest = self.given_out[-1] if self.given_out else producer
        replaced = bool(epochs) and latest.producer_id != producer.producer_id
        return replaced or any(epoch > producer.epoch for epoch in epochs)

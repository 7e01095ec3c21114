"""The sequences of one partition: Kafka's `TxnPartitionEntry`, as plain data.

A batch gets its sequence when it is first sent, and keeps it through retries. The leader stores a
sequence once, and only behind the one before it. So when a leader has stored a batch, it has stored
all earlier ones, and when it has refused the earliest unanswered batch as out of order, it has
stored none of the later ones.
"""

from barnabas_common.record.sequence import MAX_SEQUENCE, sequence_after, sequence_before

from barnabas.producer.batch import BatchState, ProducerBatch
from barnabas.producer.producer_id import ProducerIdAndEpoch

# A leader remembers this many batches of a producer (Kafka's NUM_BATCHES_TO_RETAIN). A retry of an
# older one would not be recognized. A snapshot has only the last.
MAX_UNANSWERED = 5
UNLIMITED = 2**31


class PartitionSequences:
    """`producer` is the id and epoch of the present sequences, `next_sequence` that of the next
    batch, `written_to` the first one not known to be stored.

    `unanswered`: the batches with a sequence that are neither delivered nor given up, in order.
    `unresolved`: a batch was given up, and may be stored or not. `gap`: it is not
    stored, so the sequences must begin again, under a new epoch.
    """

    __slots__ = ("_confirmed", "gap", "next_sequence", "producer", "unanswered", "unresolved",
                 "written_to")  # fmt: skip

    def __init__(self) -> None:
        self.producer: ProducerIdAndEpoch | None = None
        self.next_sequence = self.written_to = 0
        self.unanswered: list[ProducerBatch] = []
        self.unresolved = self.gap = self._confirmed = False

    def admits_retry(self, batch: ProducerBatch) -> bool:
        """Whether a batch that was sent before may be sent again: in the order of sequences."""
        return not self.gap and batch is self.unanswered[0]

    def room(self, current: ProducerIdAndEpoch | None) -> int:
        """How many record batches may be sent that never were.

        While nothing is unanswered, any number in one request: a leader that has stored them
        recognizes the request by its last batch. Behind unanswered ones, as many as the leader
        remembers; none behind a retry. As long as no batch of the id and epoch is acknowledged, one
        alone: a leader that knows nothing of the producer takes any sequence, also that of a batch
        which has overtaken a refused one.
        """
        if self.gap or self.unresolved or current is None:
            return 0
        confirmed = self._confirmed and self.producer == current
        if not self.unanswered:
            return UNLIMITED if confirmed else 1
        if not confirmed or any(batch.attempts > 1 for batch in self.unanswered):
            return 0
        return MAX_UNANSWERED - _record_batches(self.unanswered)

    def assign(self, batch: ProducerBatch, current: ProducerIdAndEpoch) -> None:
        """Give an admitted batch its sequence, unless it has one."""
        if batch.producer is not None:
            return
        if self.producer != current:
            self.restart()
            self.producer = current
        batch.number(current, self.next_sequence)
        self.next_sequence = sequence_after(self.next_sequence, batch.offsets)
        self.unanswered.append(batch)

    def may_be_forgotten(self, batch: ProducerBatch) -> bool:
        """Whether a leader that has stored the unanswered batch may not recognize it: it may have
        stored a later one and have restarted, after which it remembers only the last."""
        return batch.maybe_stored and bool(self.behind(batch))

    def behind(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """The unanswered batches that follow an unanswered one."""
        return self.unanswered[self.unanswered.index(batch) + 1 :]

    def delivered(self, batch: ProducerBatch) -> None:
        """Note that a batch is stored, perhaps one that was given up."""
        if batch in self.unanswered:
            self.unanswered.remove(batch)
        if batch.producer is None or batch.producer != self.producer:
            return
        self._confirmed = True
        end = sequence_after(batch.base_sequence, batch.offsets)
        if sequence_before(end, self.written_to) <= MAX_SEQUENCE // 2:  # answers come in any order
            self.written_to = end

    def given_up(self, batch: ProducerBatch) -> None:
        """Note that a batch is not sent again; if it has a sequence it may be stored or not."""
        if batch in self.unanswered:
            self.unanswered.remove(batch)
            self.unresolved = True

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Give the parts of a refused batch its sequences."""
        if batch.producer is None:
            return
        place = self.unanswered.index(batch)
        self.unanswered[place : place + 1] = parts
        sequence = batch.base_sequence
        for part in parts:
            part.number(batch.producer, sequence)
            sequence = sequence_after(sequence, part.offsets)

    def needs_epoch(self) -> bool:
        """Whether the sequences must begin again, and no answer is awaited any more."""
        if self.unresolved and not self.unanswered:
            self.unresolved = False
            # A later batch that is stored, or a late answer, shows that nothing is missing.
            self.gap = self.gap or self.written_to != self.next_sequence
        return self.gap and all(batch.state is BatchState.CLOSED for batch in self.unanswered)

    def restart(self) -> None:
        """Take their sequences from all batches: they get others when they are sent."""
        for batch in self.unanswered:
            batch.producer = None
        self.unanswered.clear()
        self.producer = None
        self.next_sequence = self.written_to = 0
        self.unresolved = self.gap = self._confirmed = False


def _record_batches(batches: list[ProducerBatch]) -> int:
    return sum(batch.record_batches for batch in batches)

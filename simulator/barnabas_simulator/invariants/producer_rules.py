"""I13: what an idempotent producer sends is once in a log, and every replica knows how far it is.

Asked of a replica that becomes leader, in every sample, and at rest.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from barnabas_broker.log.producers.producer_state import unpack
from barnabas_broker.replica.partition.partition import Partition
from barnabas_common.record.sequence import MAX_SEQUENCE, sequence_after, sequence_before
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.logs.image import Batch, LogImage, Sequenced
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.view import Replica


class State(Protocol):
    """What a broker knows of a producer's batch."""

    @property
    def last_sequence(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


@rule("I13 Idempotence")
def sequences_follow(replica: Replica, image: LogImage) -> str | None:
    """Of each producer and epoch the sequences in a log follow one another, none twice; a new epoch
    begins at 0, and no older one comes after it. Compaction may leave gaps. (KIP-98.)"""
    before: dict[int, tuple[Batch, Sequenced]] = {}
    for batch in image.batches:
        sent = batch.sequenced
        if sent is None or sent.first_sequence < 0:
            continue
        earlier = before.get(sent.producer_id)
        if earlier is not None and not _follows(earlier[1], sent, image.held is not None):
            return f"{batch} does not follow {earlier[0]}; {replica}"
        before[sent.producer_id] = batch, sent
    return None


def _follows(before: Sequenced, after: Sequenced, is_compacted: bool) -> bool:
    if after.producer_epoch != before.producer_epoch:
        is_later = after.producer_epoch > before.producer_epoch
        return is_later and (is_compacted or after.first_sequence == 0)
    if after.first_sequence == before.last_sequence + 1:
        return True  # nearly always, and logs have thousands of batches
    expected = sequence_after(before.last_sequence, 1)
    skipped = sequence_before(after.first_sequence, expected)
    return skipped == 0 or (is_compacted and skipped <= MAX_SEQUENCE // 2)


@rule("I13 Idempotence")
def state_is_the_logs(
    replica: Replica, image: LogImage, entries: Mapping[int, bytes]
) -> str | None:
    """A replica knows the last batch of every producer in its log, and no batch that its log has
    not: otherwise a retry is appended twice, or what was never written counts as a retry. Batches
    that retention has deleted may be known."""
    for producer_id, last in _last(image).items():
        known = entries.get(producer_id)
        if known is None:
            return f"producer id {producer_id} is unknown, its last batch is {last}; {replica}"
        state = unpack(known)
        if (state.producer_epoch, state.last_sequence, state.last_offset) != last:
            return f"of producer id {producer_id} {state} is known, not {last}; {replica}"
    start = image.batches[0].base_offset if image.batches else replica.log_end
    for producer_id, known in entries.items():
        for one in unpack(known).batches():
            if one.last_offset >= start and not _has(image, producer_id, one):
                return f"{one} of producer id {producer_id} is not in the log; {replica}"
    return None


class Last(NamedTuple):
    """A producer's epoch and the end of its last batch under it; a marker may raise the epoch."""

    producer_epoch: int
    last_sequence: int
    last_offset: int


def _last(image: LogImage) -> dict[int, Last]:
    found: dict[int, Last] = {}
    for batch in image.batches:
        sent, part = batch.sequenced, batch.transaction
        if sent is not None:
            found[sent.producer_id] = Last(
                sent.producer_epoch, sent.last_sequence, batch.last_offset
            )
        elif part is not None:
            known = found.get(part.producer_id)
            if known is None or known.producer_epoch != part.producer_epoch:
                found[part.producer_id] = Last(part.producer_epoch, -1, -1)
    return found


def _has(image: LogImage, producer_id: int, known: State) -> bool:
    """Whether the log has this batch, or compaction may have taken it."""
    index = image.index_of(known.last_offset)
    if index < len(image.batches) and image.batches[index].last_offset == known.last_offset:
        sent = image.batches[index].sequenced
        return sent is not None and (sent.producer_id, sent.last_sequence) == (
            producer_id,
            known.last_sequence,
        )
    return image.held is not None and known.last_offset < image.end


def check_producers(
    findings: Findings, replica: Replica, partition: Partition, image: LogImage
) -> None:
    """Ask both of a replica whose log is open, and all of which the image has."""
    log = partition.log
    if log is None or log.is_failed or image.end < replica.log_end:
        return
    key = partition.topic_partition
    findings.hold(key, sequences_follow, replica, image)
    findings.hold(key, state_is_the_logs, replica, image, log.producers.entries)


class ProducerSamples:
    """Remembers what replicas and their logs said of producers: most are as they were."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, TopicPartition], tuple[object, ...]] = {}

    def is_new(self, replica: Replica, partition: Partition, image: LogImage) -> bool:
        """Whether anything differs from the last sample of this replica."""
        key, log = (replica.broker_id, partition.topic_partition), partition.log
        assert log is not None
        indexes = [(segment.path, len(segment.txn_index)) for segment in log.segments()]
        producers = dict(log.producers.entries), log.producers.transactions
        now = replica, image, image.version, indexes, producers
        before, self._known[key] = self._known.get(key), now
        return before != now

    def forget(self) -> None:
        """Let every replica be new."""
        self._known.clear()

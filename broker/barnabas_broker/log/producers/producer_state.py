"""What a partition knows of one producer, and which batches of it may be appended.

Pure decisions (Kafka's `ProducerStateEntry` and `ProducerAppendInfo`). An entry is kept packed, as
`bytes`: first the 46 bytes that Kafka writes into a `.snapshot` file, then up to four older batches
of 24 bytes. So a hundred thousand producers take little memory and no time of the garbage
collector, and a snapshot is the first 46 bytes of each.

    ==  =====  =====================  ====================================================
     0  int64  producerId
     8  int16  producerEpoch
    10  int32  lastSequence           of the last batch; -1: no batch under this epoch
    14  int64  lastOffset             of the last batch; -1: no batch
    22  int32  offsetDelta            its number of records minus 1, as its producer sent it
    26  int64  timestamp              its largest; that of the marker after a transaction
    34  int32  coordinatorEpoch       of the last transaction marker; -1: none
    38  int64  currentTxnFirstOffset  where the open transaction begins; -1: none is open
    46  24 x   older batches          lastSequence .. timestamp of each, the newest first
    ==  =====  =====================  ====================================================
"""

import struct
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from barnabas_common.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceNumberError,
)
from barnabas_common.record.batch import BatchHeader
from barnabas_common.record.sequence import last_sequence_of, sequence_after, sequence_before

BATCHES_KEPT = 5
"""As many as a producer may have in flight: any of them may come a second time."""
NONE = -1

_ENTRY = struct.Struct(">qhiqiqiq")
_BATCH = struct.Struct(">iqiq")
ENTRY_SIZE = _ENTRY.size
_BATCH_START, _BATCH_END = 10, 34
_OLDER_KEPT = (BATCHES_KEPT - 2) * _BATCH.size
_comparable = attrgetter(
    "attributes",
    "record_count",
    "last_offset_delta",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
_LAST_OFFSET = struct.Struct(">q")
_LAST_OFFSET_POSITION, _TIMESTAMP_POSITION, _TXN_POSITION = 14, 26, 38


class BatchMetadata(NamedTuple):
    """A batch that was appended."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return sequence_before(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry(NamedTuple):
    """An entry unpacked; `older` stays packed."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int
    older: bytes

    def batches(self) -> Iterator[BatchMetadata]:
        """The batches that would be recognized, the newest first."""
        if self.last_offset >= 0:
            yield BatchMetadata(
                self.last_sequence, self.last_offset, self.offset_delta, self.timestamp
            )
        yield from map(BatchMetadata._make, _BATCH.iter_unpack(self.older))


class Share(NamedTuple):
    """The batches of one append, which are all of one producer and follow one another."""

    producer_id: int
    producer_epoch: int
    batches: Sequence[BatchHeader]


class Known(NamedTuple):
    """How many of a share's batches, from the first on, were appended earlier, and where.

    `first_offset` is -1 if it is unknown.
    """

    batches: int
    first_offset: int
    last_offset: int
    timestamp: int

    def first_of_all(self, appended_at: int) -> int:
        """The offset of the share's first batch if the others were now appended at this offset; -1
        if they do not lie behind one another."""
        if not self.batches:
            return appended_at
        return self.first_offset if self.last_offset + 1 == appended_at else NONE


ALL_NEW = Known(0, NONE, NONE, NONE)


def unpack(entry: bytes) -> ProducerStateEntry:
    """The entry as fields."""
    return ProducerStateEntry._make((*_ENTRY.unpack_from(entry), entry[ENTRY_SIZE:]))


def last_offset_of(entry: bytes) -> int:
    """The last offset of the producer's last batch; -1 without one."""
    offset: int = _LAST_OFFSET.unpack_from(entry, _LAST_OFFSET_POSITION)[0]
    return offset


def has_expired(entry: bytes, now_ms: int, expiration_ms: int) -> bool:
    """Whether the producer was silent for so long; never in the middle of a transaction."""
    (timestamp,) = _LAST_OFFSET.unpack_from(entry, _TIMESTAMP_POSITION)
    (transaction,) = _LAST_OFFSET.unpack_from(entry, _TXN_POSITION)
    return bool(transaction == NONE and now_ms - timestamp >= expiration_ms)


# ---- what an append does to an entry


def after_batch(entry: bytes | None, header: BatchHeader) -> bytes:
    """The entry after a batch of records, whose header has its offsets; nothing is checked.

    A batch under another epoch starts again at 0: sequences of two epochs have nothing in common.
    """
    coordinator_epoch = transaction = NONE
    older = b""
    if entry is not None:
        producer = _ENTRY.unpack_from(entry)
        coordinator_epoch, transaction = producer[6:]
        if producer[1] == header.producer_epoch and producer[3] >= 0:
            older = entry[_BATCH_START:_BATCH_END] + entry[ENTRY_SIZE : ENTRY_SIZE + _OLDER_KEPT]
    if transaction == NONE and header.is_transactional:
        transaction = header.base_offset
    return (
        _ENTRY.pack(
            header.producer_id,
            header.producer_epoch,
            last_sequence_of(header),
            header.last_offset,
            header.last_offset_delta,
            header.max_timestamp,
            coordinator_epoch,
            transaction,
        )
        + older
    )


def after_marker(entry: bytes | None, header: BatchHeader, coordinator_epoch: int) -> bytes:
    """The entry after a transaction marker: the transaction is over, and its epoch counts."""
    producer = ProducerStateEntry(
        header.producer_id, NONE, NONE, NONE, 0, header.max_timestamp, NONE, NONE, b""
    )
    if entry is not None:
        producer = unpack(entry)
    if producer.producer_epoch != header.producer_epoch:
        producer = producer._replace(
            last_sequence=NONE, last_offset=NONE, offset_delta=0, older=b""
        )
    *fields, older = producer._replace(
        producer_epoch=header.producer_epoch,
        timestamp=header.max_timestamp,
        coordinator_epoch=coordinator_epoch,
        current_txn_first_offset=NONE,
    )
    return _ENTRY.pack(*fields) + older


# ---- the checks of a leader


def share_of(headers: Sequence[BatchHeader]) -> Share | None:
    """The batches of one append as a whole, None if they are of no idempotent producer.

    Raises:
        InvalidRecordError: some are of another producer or epoch, or have no sequence, or are in a
            transaction while others are not.
        OutOfOrderSequenceNumberError: they do not follow one another.
    """
    first = headers[0]
    producer = (first.producer_id, first.producer_epoch)
    if first.producer_id < 0 and all(header.producer_id < 0 for header in headers):
        return None
    expected = first.base_sequence
    for header in headers:
        if (header.producer_id, header.producer_epoch) != producer:
            raise InvalidRecordError("the batches of one append are not all of one producer")
        if header.is_transactional != first.is_transactional:
            raise InvalidRecordError("the batches of one append are not all of one transaction")
        if header.producer_epoch < 0 or header.base_sequence < 0:
            raise InvalidRecordError(
                f"a batch of producer id {header.producer_id} has epoch {header.producer_epoch}"
                f" and sequence {header.base_sequence}"
            )
        if header.base_sequence != expected:
            raise OutOfOrderSequenceNumberError(
                f"producer id {header.producer_id}: a batch with sequence {header.base_sequence}"
                f" follows one that ends before {expected}"
            )
        expected = sequence_after(expected, header.last_offset_delta + 1)
    return Share(*producer, headers)


def check(entry: bytes | None, share: Share) -> Known:
    """Return which of the share's batches were appended earlier; the others are to be appended.

    A retry repeats the whole share. Its first batches alone are known if the leader that took it
    died before the others were replicated. Without an entry any sequence is accepted: the
    producer's records may have been deleted.

    Raises:
        InvalidProducerEpochError: a newer epoch of the producer has written.
        OutOfOrderSequenceNumberError: what comes before it was not appended; or it is older than
            the batches kept. To call that a duplicate could lose it: a leader without an entry may
            have accepted a later batch first.
    """
    if entry is None:
        return ALL_NEW
    state = unpack(entry)
    if share.producer_epoch < state.producer_epoch:
        raise InvalidProducerEpochError(
            f"producer id {share.producer_id} has epoch {state.producer_epoch} here, so batches of"
            f" epoch {share.producer_epoch} are refused"
        )
    if share.producer_epoch == state.producer_epoch:
        known = _known(state, share)
        if known is not None:
            return known
    is_new_epoch = share.producer_epoch > state.producer_epoch or state.last_offset < 0
    expected = 0 if is_new_epoch else sequence_after(state.last_sequence, 1)
    first = share.batches[0].base_sequence
    if first == expected:
        return ALL_NEW
    raise OutOfOrderSequenceNumberError(
        f"producer id {share.producer_id}, epoch {share.producer_epoch}: sequence {first} where"
        f" {expected} was expected"
    )


def _known(state: ProducerStateEntry, share: Share) -> Known | None:
    """The share as it was appended if its last batch is one of those kept, or its first batches if
    they end with the last batch kept. Of two batches with the same sequences, which only
    replication can bring, Kafka takes the older one."""
    if state.last_offset < 0:
        return None
    kept = [*reversed([*_BATCH.iter_unpack(state.older)]), state[2:6]]
    for batch in kept:
        if _is_same(batch, share.batches[-1]):
            return _first_batches(share, len(share.batches), batch)
    for count, header in enumerate(share.batches, 1):
        if _is_same(kept[-1], header):
            return _first_batches(share, count, kept[-1])
    return None


def check_retry(header: BatchHeader, stored: BatchHeader) -> None:
    """Raise OutOfOrderSequenceNumberError if another producer wrote what is stored.

    An older copy of ZooKeeper gives out producer ids that are in use. Two producers then have one
    id, the same epoch and the same first sequences; the records of the second would be taken for a
    retry, and lost. A retry has the same checksum, which does not cover what a leader stamps. It
    says nothing if the topic's settings or compaction changed the batch.
    """
    if _comparable(stored) == _comparable(header) and stored.crc != header.crc:
        raise OutOfOrderSequenceNumberError(
            f"producer id {header.producer_id}: another producer had this id, and has written other"
            f" records under sequence {header.base_sequence}"
        )


def begins_at(offset: int, first: BatchHeader, stored: BatchHeader | None) -> bool:
    """Whether a retried share with this first batch begins at the offset where it would begin if
    nothing lay between its batches. Then nothing does. Otherwise a retry has appended some of them
    later than the others, after another producer's. `stored` is the batch at the offset."""
    return (
        stored is not None
        and stored.base_offset == offset
        and stored.producer_id == first.producer_id
        and stored.producer_epoch == first.producer_epoch
        and stored.base_sequence == first.base_sequence
    )


def _is_same(batch: tuple[int, ...], header: BatchHeader) -> bool:
    return batch[2] == header.last_offset_delta and batch[0] == last_sequence_of(header)


def _first_batches(share: Share, count: int, last: tuple[int, ...]) -> Known:
    """They end with this batch. The first offset holds if nothing lies between them: see
    `begins_at`."""
    first = last[1] + 1 - sum(h.last_offset_delta + 1 for h in share.batches[:count])
    return Known(count, first, last[1], last[3])

"""The header of a record batch, format v2 (KIP-98).

A batch is 61 bytes of header and then the records, plain or compressed as one block. The bytes on
the wire and in a `.log` file are the same. Numbers are big-endian, as everywhere in Kafka:

    ==  =====  ====================  =====================================================
     0  int64  baseOffset            offset of the first record; producers send 0
     8  int32  batchLength           bytes after this field: the batch has 12 more
    12  int32  partitionLeaderEpoch  set by the leader; producers send -1
    16  int8   magic                 2
    17  uint32 crc                   CRC-32C of everything from byte 21 on
    21  int16  attributes            bits 0-2 compression, 3 log append time,
                                     4 transactional, 5 control, 6 delete horizon
    23  int32  lastOffsetDelta       last offset = baseOffset + this, also after compaction
    27  int64  baseTimestamp         ms; the records' timestamps are relative to it; with bit 6
                                     it is when compaction may remove tombstones (KIP-534)
    35  int64  maxTimestamp          ms; the append time if bit 3 is set
    43  int64  producerId            -1: the producer is not idempotent
    51  int16  producerEpoch         -1: the producer is not idempotent
    53  int32  baseSequence          -1: the producer is not idempotent
    57  int32  recordCount           0 is possible, after compaction
    ==  =====  ====================  =====================================================

The leader assigns offset and epoch, which are before byte 21 and outside the CRC. They are stamped
over the producer's bytes, so the producer's checksum stays valid all the way to the consumer.

The log, the replica fetcher, the producer and the consumer use this module. It copies no records.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from barnabas_common.errors.kafka_errors import BarnabasError

Buffer = bytes | bytearray | memoryview

HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""The number of bytes of a batch that its own `batch_length` does not count."""
STAMP_SIZE = 16
"""The number of bytes that the leader overwrites: base offset, length and leader epoch."""

MAGIC = 2
CRC_POSITION = 17
CRC_START = 21
"""The position of the first byte that the checksum covers: that of the attributes."""

COMPRESSION_MASK = 0b111
LOG_APPEND_TIME = 1 << 3
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
DELETE_HORIZON = 1 << 6

_HEADER = struct.Struct(">qiibIhiqqqhii")
_STAMP = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_POSITION = 35
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_POSITION = 43


class CorruptBatch(BarnabasError, ValueError):
    """The bytes are not a valid record batch; the message says where and why."""


class BatchHeader(NamedTuple):
    """The 61 bytes in front of the records; the fields are in their order on disk."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes, including this header."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        """The last offset that the producer's batch had, even if compaction removed its record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset that follows this batch, even where compaction removed its last records."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 are not assigned."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> int:
        """0: records have the producer's times; 1: all have the broker's, `max_timestamp`."""
        return (self.attributes & LOG_APPEND_TIME) >> 3

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a transaction marker, which has an offset but is no user record."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove the tombstones or the marker of this batch (KIP-534).

        None if compaction has not yet set it.
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def has_consecutive_offsets(self) -> bool:
        """Whether the batch has one record for each offset, as a producer's batch must have.

        Only compaction may leave gaps.
        """
        return self.record_count > 0 and self.record_count == self.last_offset_delta + 1


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch that starts at `position`; the records may be missing.

    Raises:
        CorruptBatch: fewer than 61 bytes are left, the length is impossible, or the format is not
            v2.
    """
    left = len(buffer) - position
    if left < HEADER_SIZE:
        raise CorruptBatch(f"batch at byte {position}: {left} bytes left, its header takes 61")
    header = BatchHeader._make(_HEADER.unpack_from(buffer, position))
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatch(
            f"batch at byte {position}: length {header.batch_length} is less than its own header"
        )
    if header.magic != MAGIC:
        raise CorruptBatch(f"batch at byte {position}: format v{header.magic}, only v2 is known")
    return header


def batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch; a partial one at the end is ignored.

    A fetch response may end in the middle of a batch, so that is no error. CRCs are not checked.

    Raises:
        CorruptBatch: as in `parse_header`, when the iteration reaches the batch.
    """
    position, end = 0, len(buffer)
    while end - position >= HEADER_SIZE:
        header = parse_header(buffer, position)
        if position + header.size > end:
            return
        yield position, header
        position += header.size


def in_order(
    found: Iterable[tuple[int, BatchHeader]],
    start: int,
    end: int | None = None,
    starts_inside: bool = False,
) -> Iterator[tuple[int, BatchHeader]]:
    """The batches of a log, from offset `start` on and below `end`, while their offsets rise.

    The checksum does not cover a batch's offset. One that leaves a gap before it, as compaction
    does, counts only if the next one follows it: otherwise it may be its own offset that is wrong.
    With `starts_inside`, the first batch may begin below `start`.

    Raises:
        CorruptBatch: offsets go back, or beyond `end`.
    """
    expected, held = start, None
    for position, header in found:
        if starts_inside:
            expected, starts_inside = min(start, header.base_offset), False
            goes_back = header.last_offset < start
        else:
            goes_back = header.base_offset < (expected if held is None else held[1].next_offset)
        if (
            goes_back
            or header.last_offset_delta < 0
            or (end is not None and header.last_offset >= end)
        ):
            raise CorruptBatch(
                f"batch at byte {position} has offsets {header.base_offset} to"
                f" {header.last_offset} where {expected} was expected"
            )
        if held is not None:
            expected = held[1].next_offset
            yield held
            held = None
        if header.base_offset > expected:
            held = position, header
        else:
            yield position, header
            expected = header.next_offset
    if held is not None:
        yield held


def next_offset(buffer: Buffer) -> int | None:
    """The offset to read next after all whole batches of `buffer`; None if it has none.

    Control batches and compacted records count too, because they need not be fetched again.

    Raises:
        CorruptBatch: as in `batches`, or a batch ends before it starts.
    """
    last = None
    for position, header in batches(buffer):
        if header.last_offset_delta < 0:
            raise CorruptBatch(
                f"batch at byte {position}, offset {header.base_offset}:"
                f" its last offset {header.last_offset} is lower"
            )
        last = header.next_offset
    return last


def whole_batch(buffer: Buffer, position: int, header: BatchHeader) -> memoryview:
    """The bytes of the batch at `position`, not copied.

    Raises:
        CorruptBatch: the batch is cut short.
    """
    batch = memoryview(buffer)[position : position + header.size]
    if len(batch) < header.size:
        raise CorruptBatch(
            f"batch at byte {position}, offset {header.base_offset}: cut short,"
            f" {len(batch)} of {header.size} bytes are there"
        )
    return batch


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Check the batch at `position` against the checksum that its producer computed.

    Raises:
        CorruptBatch: some bits changed in transit, or the batch is cut short.
    """
    computed = crc32c(whole_batch(buffer, position, header)[CRC_START:])
    if computed != header.crc:
        raise CorruptBatch(
            f"batch at byte {position}, offset {header.base_offset}:"
            f" CRC is {header.crc:#010x}, its bytes give {computed:#010x}"
        )


def stamp(base_offset: int, partition_leader_epoch: int, batch_length: int) -> bytes:
    """The first 16 bytes of a stored batch, which replace the producer's."""
    return _STAMP.pack(base_offset, batch_length, partition_leader_epoch)


def stamp_log_append_time(batch: bytearray, timestamp_ms: int) -> None:
    """Give one batch the broker's time, in place (`message.timestamp.type=LogAppendTime`).

    The checksum covers attributes and largest timestamp, so it is computed again.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CRC_START)
    _ATTRIBUTES.pack_into(batch, CRC_START, attributes | LOG_APPEND_TIME)
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_POSITION, timestamp_ms)
    seal(batch)


def stamp_producer(
    batch: bytearray, producer_id: int, producer_epoch: int, base_sequence: int
) -> None:
    """Say in the header of one batch, in place, who produced it (KIP-98)."""
    _PRODUCER.pack_into(batch, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    seal(batch)


def seal(batch: bytearray) -> None:
    """Compute the CRC of this one whole batch and write it into the header."""
    _CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[CRC_START:]))


def pack_header(header: BatchHeader) -> bytes:
    """The 61 bytes of a header; `crc` is written as given."""
    return _HEADER.pack(*header)

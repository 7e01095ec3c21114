"""The bytes of a batch after a pass. Its offsets, epochs, producer and codec stay as they were.

The records that stay are copied as they are, not encoded again: their offsets are relative to the
batch's base offset, which stays. Only when a delete horizon is set do their timestamps change,
because they are relative to the field that now has the horizon.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from barnabas_common.record.batch import (
    COMPRESSION_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    BatchHeader,
    Buffer,
    CorruptBatch,
    pack_header,
    seal,
)
from barnabas_common.record.compiled import MALFORMED, DefaultRecordBatch, guarded
from barnabas_common.record.compression import compress
from barnabas_common.record.recompress import uncompressed

from barnabas_broker.log.compaction.what_stays import STAYS, PassRules, fate

_ABORT = b"\0\0"
_NO_TIMESTAMP = -1
_LONG_BITS = 64


def decoded(batch: Buffer, header: BatchHeader) -> tuple[Buffer, list[Any]]:
    """The batch with plain records, and the records decoded. Raises CorruptBatch."""
    plain = uncompressed(batch, 0, header)
    try:
        return plain, list(DefaultRecordBatch(guarded(plain)))
    except MALFORMED as error:
        raise CorruptBatch(
            f"batch at offset {header.base_offset}: malformed records: {error}"
        ) from error


def is_abort_marker(batch: Buffer, header: BatchHeader) -> bool:
    """Whether a control batch ends a transaction by an abort. Raises CorruptBatch."""
    _, records = decoded(batch, header)
    return bool(records) and (records[0].key or b"")[2:4] == _ABORT


def filter_batch(batch: Buffer, header: BatchHeader, rules: PassRules) -> Buffer | None:
    """A batch of records after the pass; None if nothing of it stays. Raises CorruptBatch."""
    plain, records = decoded(batch, header)
    expired = rules.horizon_has_passed(header)
    stay = [fate(record, rules.offsets, expired) in STAYS for record in records]
    kept = [record for record, stays in zip(records, stay, strict=True) if stays]
    if not kept:
        return empty_batch(header) if rules.stays_without_records(header) else None
    set_horizon = header.delete_horizon_ms is None and any(one.value is None for one in kept)
    if len(kept) == len(records) and not set_horizon:
        return batch
    horizon = rules.new_delete_horizon_ms if set_horizon else None
    return _rewritten(plain, header, stay, _max_timestamp(kept, header), horizon)


def filter_marker(
    batch: Buffer, header: BatchHeader, rules: PassRules, is_last_of_transaction: bool
) -> Buffer | None:
    """A control batch after the pass. `is_last_of_transaction`: its records are all gone."""
    if not header.record_count or (is_last_of_transaction and rules.horizon_has_passed(header)):
        return empty_batch(header) if rules.stays_without_records(header) else None
    if not is_last_of_transaction or header.delete_horizon_ms is not None:
        return batch
    plain, records = decoded(batch, header)
    stay = [True] * len(records)
    return _rewritten(plain, header, stay, header.max_timestamp, rules.new_delete_horizon_ms)


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch without records, as Kafka writes it: offsets, producer and epochs remain."""
    kept_attributes = LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
    return _sealed(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD,
            attributes=header.attributes & kept_attributes,
            base_timestamp=_NO_TIMESTAMP,
            record_count=0,
        ),
        b"",
    )


def _max_timestamp(kept: Sequence[Any], header: BatchHeader) -> int:
    if header.timestamp_type == 1:
        return header.max_timestamp
    timestamps = (record.timestamp for record in kept)
    return max(_NO_TIMESTAMP if one is None else one for one in timestamps)


def _rewritten(
    plain: Buffer,
    header: BatchHeader,
    stay: Sequence[bool],
    max_timestamp: int,
    horizon: int | None,
) -> bytearray:
    body = bytes(memoryview(plain)[HEADER_SIZE:])
    parts = [
        body[start:end] if horizon is None else _moved(body, content, end, header, horizon)
        for stays, (start, content, end) in zip(stay, _places(body, header), strict=True)
        if stays
    ]
    codec = header.attributes & COMPRESSION_MASK
    records = compress(codec, b"".join(parts))
    return _sealed(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records),
            attributes=header.attributes | (0 if horizon is None else DELETE_HORIZON),
            base_timestamp=header.base_timestamp if horizon is None else horizon,
            max_timestamp=max_timestamp,
            record_count=len(parts),
        ),
        records,
    )


def _sealed(header: BatchHeader, records: Buffer) -> bytearray:
    batch = bytearray(pack_header(header))
    batch += records
    seal(batch)
    return batch


def _places(body: bytes, header: BatchHeader) -> Iterator[tuple[int, int, int]]:
    """Of each record: where it starts, where its content follows its length, where it ends."""
    start = 0
    while start < len(body):
        try:
            length, content = _read_number(body, start)
        except IndexError:
            length, content = 0, start
        if length <= 0 or content + length > len(body):
            raise CorruptBatch(f"batch at offset {header.base_offset}: a record ends after it")
        yield start, content, content + length
        start = content + length


def _moved(body: bytes, content: int, end: int, header: BatchHeader, horizon: int) -> bytes:
    """A record with its timestamp relative to the horizon."""
    delta, rest = _read_number(body, content + 1)
    renewed = body[content : content + 1]
    renewed += _number(header.base_timestamp + delta - horizon) + body[rest:end]
    return _number(len(renewed)) + renewed


def _read_number(data: bytes, position: int) -> tuple[int, int]:
    """A zig-zag number of variable length, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def _number(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> (_LONG_BITS - 1))
    encoded = bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)

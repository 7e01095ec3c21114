"""Fetched batches as columns, decoded together by numpy, without an object for each record.

    _walk      where the records begin: each says where the next one does, but many in a row have
               the same size
    _columns   the numbers in front of keys and values, of all records at once
    _gather    keys and values, copied by Arrow

For plain cases only. Headers, small batches and damage are left to `read_columns`, which knows what
to say about damage. Needs numpy and pyarrow; imported when columns are asked for.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from barnabas_common.record.batch import (
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    CorruptBatch,
    check_crc,
)
from barnabas_common.record.reader import Columns, Filter, batches_between
from barnabas_common.record.recompress import uncompressed

# Beyond these, Arrow's 32-bit offsets or numpy's 64-bit sums may overflow.
_MOST_BYTES = 2**31 - 1
_MOST_BASE = 2**62
# Longer varints are legal, but no real record has one.
_VARINT_BYTES = 5
# With fewer records per batch, numpy costs more per batch than it saves.
_RECORDS_WORTHWHILE = 16
# The shortest run of records of one size that is decoded as a run.
_RUN_WORTHWHILE = 8
_ATTEMPTS = 3
# From a record to the next, by the first byte of its length; a second byte adds 64 times itself.
_SKIP = [1 + (byte >> 1) for byte in range(128)] + [2 + (byte >> 1) for byte in range(128)]
_ZIGZAG = np.array([byte >> 1 ^ -(byte & 1) for byte in range(128)])


class _Unusual(Exception):
    """The batches are left to `read_columns`."""


class _Batch(NamedTuple):
    """A batch. `end`: where its records end. `parts`: arrays of the positions where they begin."""

    header: BatchHeader
    end: int
    parts: list[Any]


def decode(
    buffer: Buffer, from_offset: int, end_offset: int, check_crcs: bool, batch_filter: Filter
) -> Columns | None:
    """The columns of `read_columns` without headers; None if the batches are left to it."""
    try:
        plain, spans = _plain(buffer, from_offset, end_offset, check_crcs, batch_filter)
        found = [
            _Batch(h, end, _walk(plain, start, end, h.record_count)) for start, end, h in spans
        ]
        return _columns(plain, found, from_offset, end_offset)
    except (_Unusual, CorruptBatch, IndexError):
        return None


def _plain(
    buffer: Buffer, from_offset: int, end_offset: int, check_crcs: bool, batch_filter: Filter
) -> tuple[bytes, list[tuple[int, int, BatchHeader]]]:
    """The bytes, and where in them the records of each batch begin and end."""
    chosen = list(batches_between(buffer, from_offset, end_offset, batch_filter))
    _check_usual([header for _, header in chosen])
    if check_crcs:  # only now: `read_columns` checks what is left to it
        for position, header in chosen:
            check_crc(buffer, position, header)
    if any(header.compression for _, header in chosen):
        plain, spans = _decompressed(buffer, chosen)
    else:
        plain = bytes(buffer)
        spans = [(p + HEADER_SIZE, p + header.size, header) for p, header in chosen]
    if len(plain) > _MOST_BYTES:
        raise _Unusual
    return plain, spans


def _decompressed(
    buffer: Buffer, chosen: list[tuple[int, BatchHeader]]
) -> tuple[bytes, list[tuple[int, int, BatchHeader]]]:
    joined, spans = bytearray(), []
    for position, header in chosen:
        start = len(joined)
        joined += memoryview(uncompressed(buffer, position, header))[HEADER_SIZE:]
        spans.append((start, len(joined), header))
    return bytes(joined), spans


def _check_usual(headers: list[BatchHeader]) -> None:
    if sum(header.record_count for header in headers) < _RECORDS_WORTHWHILE * max(len(headers), 1):
        raise _Unusual
    for header in headers:
        times = header.base_timestamp, header.max_timestamp
        if header.record_count <= 0 or max(*map(abs, times), header.base_offset) > _MOST_BASE:
            raise _Unusual


# ---- where the records are


def _walk(plain: bytes, position: int, end: int, count: int) -> list[Any]:
    """Arrays of the positions where `count` records begin; the last of them must end at `end`."""
    array = np.frombuffer(plain, np.uint8)
    parts: list[Any] = []
    misses = 0
    while count:
        body, size = _length(plain, position)
        stride = body - position + size
        run, most = 0, min(count, (end - position) // stride)
        if misses < _ATTEMPTS and most >= _RUN_WORTHWHILE:
            run = _of_one_size(array, position, stride, body - position, most)
        if run >= _RUN_WORTHWHILE:
            misses = 0
            parts.append(np.arange(position, position + run * stride, stride))
            position += run * stride
        else:
            misses += 1
            run = count if misses >= _ATTEMPTS else min(count, _RUN_WORTHWHILE)
            positions = _one_by_one(plain, position, run)
            position = positions.pop()
            parts.append(np.array(positions))
        count -= run
    if position != end:
        raise _Unusual
    return parts


def _of_one_size(array: Any, position: int, stride: int, size: int, most: int) -> int:
    """How many records from here on have the same length. `size` is that of the length field."""
    different = np.zeros(most, bool)
    for place in range(position, position + size):
        different |= array[place : place + most * stride : stride] != array[place]
    return int(different.argmax()) or most


def _one_by_one(plain: bytes, position: int, count: int) -> list[int]:
    """The positions of `count` records, and the position behind the last."""
    found = [position]
    append, skip = found.append, _SKIP
    for _ in range(count):
        first = plain[position]
        if first < 128:
            position += skip[first]
        else:
            second = plain[position + 1]
            if second < 128:
                position += skip[first] + (second << 6)
            else:
                body, size = _length(plain, position)
                position = body + size
        append(position)
    return found


def _length(plain: bytes, position: int) -> tuple[int, int]:
    """The position behind the length of a record, and the length."""
    value = 0
    for index in range(_VARINT_BYTES):
        byte = plain[position + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return position + index + 1, value >> 1
    raise _Unusual


# ---- what is in them


def _columns(plain: bytes, found: list[_Batch], from_offset: int, end_offset: int) -> Columns:
    array = np.frombuffer(plain, np.uint8)
    counts = [batch.header.record_count for batch in found]
    starts = np.concatenate([part for batch in found for part in batch.parts])
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[np.cumsum(counts) - 1] = [batch.end for batch in found]
    lengths, place = _varints(array, starts)
    _check((place + lengths == ends) & (array[place] < 128))  # attributes: one byte
    time_deltas, place = _varints(array, place + 1)
    offset_deltas, place = _varints(array, place)
    key_lengths, key_places = _varints(array, place)
    value_lengths, value_places = _varints(array, key_places + np.maximum(key_lengths, 0))
    place = value_places + np.maximum(value_lengths, 0)
    _check((place + 1 == ends) & (array[place] == 0))  # no headers: one byte, 0
    _check((key_lengths >= -1) & (value_lengths >= -1) & (offset_deltas >= 0))
    offsets = np.repeat([batch.header.base_offset for batch in found], counts) + offset_deltas
    _check(offsets[1:] > offsets[:-1])
    chosen = slice(*np.searchsorted(offsets, (from_offset, end_offset)))
    types = np.repeat([batch.header.timestamp_type for batch in found], counts)
    return Columns(
        offsets[chosen],
        _times([batch.header for batch in found], counts, time_deltas)[chosen],
        types[chosen],
        _gather(plain, key_places[chosen], key_lengths[chosen]),
        _gather(plain, value_places[chosen], value_lengths[chosen]),
    )


def _check(usual: Any) -> None:
    if not usual.all():
        raise _Unusual


def _times(headers: list[BatchHeader], counts: list[int], deltas: Any) -> Any:
    """The producer's timestamps; in a batch with LogAppendTime, the broker's."""
    bases = [h.max_timestamp if h.timestamp_type else h.base_timestamp for h in headers]
    if any(header.timestamp_type for header in headers):
        deltas = deltas * np.repeat([1 - header.timestamp_type for header in headers], counts)
    return np.repeat(bases, counts) + deltas


def _varints(array: Any, places: Any) -> tuple[Any, Any]:
    """The zigzag numbers at these places, and the places behind them."""
    first = array[places]
    ends = places + 1
    longer = np.flatnonzero(first >= 128)
    if not len(longer):
        return _ZIGZAG[first], ends
    values = (first & 127).astype(np.int64)
    for index in range(1, _VARINT_BYTES):
        byte = array[ends[longer]]
        values[longer] |= (byte & 127).astype(np.int64) << 7 * index
        ends[longer] += 1
        longer = longer[byte >= 128]
        if not len(longer):
            return values >> 1 ^ -(values & 1), ends
    raise _Unusual


def _gather(plain: bytes, starts: Any, lengths: Any) -> Any:
    """The bytes at these places as an Arrow array; null for a length of -1."""
    count, null = len(starts), lengths < 0
    if null.all():
        return pa.nulls(count, pa.binary())
    # The bytes between two of them are an element too, which is not taken.
    bounds = np.empty(2 * count, np.int32)
    bounds[::2], bounds[1::2] = starts, starts + np.maximum(lengths, 0)
    everything = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(plain)]
    )
    return everything.take(pa.array(np.arange(0, 2 * count, 2), mask=null if null.any() else None))

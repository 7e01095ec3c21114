"""Reading a segment's file batch by batch.

Lookups scan the headers only, in small reads; recovery scans whole batches with their checksums, in
large reads. `cut_to_whole_batches`, on the hot path, finds how much of a read a reader gets.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from barnabas_common.record.batch import (
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    check_crc,
    in_order,
    parse_header,
)
from crc32c import crc32c

from barnabas_broker.disk.disk import File

_LOOKUP_BYTES = 8 * 1024
_RECOVERY_BYTES = 4 * 1024 * 1024

_SHORTEST = HEADER_SIZE - LOG_OVERHEAD
_PLACE = struct.Struct(">qi4xb6xi")
"""The start of a header, as far as readers need it: base offset, length, magic, last offset
delta."""
PLACE_SIZE = _PLACE.size
_MAGIC_POSITION = 16


class TornBatch(CorruptBatch):
    """The file ends inside its last batch, as the death of a process leaves it."""


class DamagedBatch(NamedTuple):
    """Where a batch should start that is damaged or missing, and what is wrong."""

    offset: int
    fault: str


class Cut(NamedTuple):
    """The first `size` bytes are whole batches; the batch after them starts at `next_offset`.

    `size` is 0 if not even one batch fits; then so many bytes as `first_size` are needed, 0 if the
    first batch is above the wanted offsets.
    """

    size: int
    next_offset: int
    first_size: int


def cut_to_whole_batches(data: bytes, offset: int, end_offset: int, at_end: bool) -> Cut:
    """Find the whole batches in `data`, from the one that holds `offset`, below `end_offset`.

    Ends before a batch that cannot be right; a reader asks for that one next. Offsets and lengths
    are not under the checksum. A batch that leaves a gap before it, as compaction does, counts only
    if the next one follows it. `at_end`: the segment has no bytes after `data`.

    Raises:
        CorruptBatch: the first one cannot be right.
    """
    position, expected, length = 0, offset, len(data)
    before_gap: Cut | None = None
    while position + PLACE_SIZE <= length:
        base_offset, batch_length, magic, delta = _PLACE.unpack_from(data, position)
        end = position + LOG_OVERHEAD + batch_length
        is_right = batch_length >= _SHORTEST and magic == MAGIC and delta >= 0
        if is_right and base_offset == expected and end <= length:  # as nearly always
            if base_offset + delta >= end_offset:
                return Cut(position, expected, 0)
            position, expected, before_gap = end, base_offset + delta + 1, None
            continue
        goes_back = base_offset < expected and (position or base_offset + delta < offset)
        if not is_right or goes_back or (end > length and at_end):
            certain = before_gap or Cut(position, expected, 0)
            if certain.size:
                return certain
            raise CorruptBatch(
                f"length {batch_length}, format v{magic}, offsets {base_offset} to"
                f" {base_offset + delta} where {expected} was expected"
            )
        if base_offset + delta >= end_offset:
            return Cut(position, expected, 0)
        if end > length:
            return Cut(position, expected, 0 if position else end)
        before_gap = Cut(position, expected, 0) if base_offset > expected else None
        position, expected = end, base_offset + delta + 1
    if at_end:
        if not position:
            raise CorruptBatch(f"{length} bytes, fewer than a header, where {offset} was expected")
        return Cut(position, expected, 0)
    if before_gap is None:
        return Cut(position, expected, 0)
    return before_gap if before_gap.size else Cut(0, offset, position + PLACE_SIZE)


def headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch from `position` on; checksums are not verified.

    Raises:
        CorruptBatch: the bytes before `end` are not whole batches.
    """
    chunk, start = b"", position
    while position < end:
        if position + HEADER_SIZE > start + len(chunk):
            chunk, start = file.read(position, min(_LOOKUP_BYTES, end - position)), position
        header = parse_header(chunk, position - start)
        if position + header.size > end:
            raise CorruptBatch(f"batch at byte {position} of {header.size} bytes ends after {end}")
        yield position, header
        position += header.size


def verified_batches(
    file: File, expected_offset: int, end_offset: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch of a file; checksums are verified.

    Raises:
        TornBatch: the last one is incomplete.
        CorruptBatch: at the first one that is damaged, or whose offsets cannot be right, see
            `in_order`.
    """
    return in_order(_verified(file), expected_offset, end_offset)


def _verified(file: File) -> Iterator[tuple[int, BatchHeader]]:
    position, end = 0, file.size()
    chunk, start = b"", 0
    while position < end:
        if position + HEADER_SIZE > start + len(chunk):
            chunk, start = file.read(position, _RECOVERY_BYTES), position
        if end - position < HEADER_SIZE:
            raise TornBatch(f"batch at byte {position}: {end - position} bytes, less than a header")
        header = parse_header(chunk, position - start)
        if position + header.size > end:
            found = f"{end - position} of {header.size} bytes"
            if _is_whole(file, position, end, header.crc) or _has_batch_after(file, position, end):
                raise CorruptBatch(f"batch at byte {position}: wrong length, {found}")
            raise TornBatch(f"batch at byte {position} is incomplete: {found}")
        if position + header.size > start + len(chunk):
            chunk = file.read(position, max(_RECOVERY_BYTES, header.size))
            start = position
        check_crc(chunk, position - start, header)
        yield position, header
        position += header.size


def _is_whole(file: File, position: int, end: int, crc: int) -> bool:
    """Whether the batch at `position` ends at `end`, by its checksum: its length is wrong then."""
    position, computed = position + CRC_START, 0
    while position < end:
        chunk = file.read(position, min(_RECOVERY_BYTES, end - position))
        position, computed = position + len(chunk), crc32c(chunk, computed)
    return computed == crc


def _has_batch_after(file: File, position: int, end: int) -> bool:
    """Whether a whole batch with the right checksum begins behind `position`."""
    while position + HEADER_SIZE < end:
        chunk = file.read(position, min(_RECOVERY_BYTES, end - position))
        magic_at = chunk.find(MAGIC, _MAGIC_POSITION + 1)
        while magic_at >= 0:
            start = magic_at - _MAGIC_POSITION
            if _is_batch(file, chunk, start, position, end):
                return True
            magic_at = chunk.find(MAGIC, magic_at + 1)
        position += max(1, len(chunk) - HEADER_SIZE)
    return False


def _is_batch(file: File, chunk: bytes, start: int, chunk_position: int, end: int) -> bool:
    try:
        header = parse_header(chunk, start)
        if chunk_position + start + header.size > end:
            return False
        check_crc(file.read(chunk_position + start, header.size), 0, header)
    except CorruptBatch:
        return False
    return True

"""Reading a segment's file batch by batch.

Lookups scan the headers only, in small reads; recovery scans whole batches with their checksums, in
large reads. `cut_to_whole_batches`, on the hot path, finds how much of a read a reader gets.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from barnabas_common.record.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    CorruptBatch,
    check_crc,
    parse_header,
)

from barnabas_broker.disk.disk import File

_LOOKUP_BYTES = 8 * 1024
_RECOVERY_BYTES = 4 * 1024 * 1024

_PLACE = struct.Struct(">qi11xi")
"""The start of a header, as far as readers need it: base offset, length, last offset delta."""
PLACE_SIZE = _PLACE.size


class Cut(NamedTuple):
    """The first `size` bytes are whole batches; the batch after them starts at `next_offset`.

    `size` is 0 if not even one batch fits; `first_size` is the size of the first one, or 0 if it is
    above the wanted offsets or unknown.
    """

    size: int
    next_offset: int
    first_size: int


def cut_to_whole_batches(data: bytes, end_offset: int) -> Cut:
    """Find the whole batches in `data` below `end_offset`, up to the first invalid length.

    Raises:
        CorruptBatch: the first has a length that no batch can have.
    """
    position, next_offset, length = 0, -1, len(data)
    while position + PLACE_SIZE <= length:
        base_offset, batch_length, last_offset_delta = _PLACE.unpack_from(data, position)
        if batch_length < HEADER_SIZE - LOG_OVERHEAD:
            if position:
                break
            raise CorruptBatch(f"length {batch_length} where offset {next_offset} should start")
        if base_offset + last_offset_delta >= end_offset:
            break
        end = position + LOG_OVERHEAD + batch_length
        if end > length:
            return Cut(position, next_offset, 0 if position else end)
        position = end
        next_offset = base_offset + last_offset_delta + 1
    return Cut(position, next_offset, 0)


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


def verified_batches(file: File, expected_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch of a file; checksums are verified.

    Raises:
        CorruptBatch: at the first one that is incomplete, damaged, or goes back in offsets.
    """
    position, end = 0, file.size()
    chunk, start = b"", 0
    while position < end:
        if position + HEADER_SIZE > start + len(chunk):
            chunk, start = file.read(position, _RECOVERY_BYTES), position
        header = parse_header(chunk, position - start)
        if position + header.size > end:
            raise CorruptBatch(
                f"batch at byte {position} is incomplete: {end - position} of {header.size} bytes"
            )
        if position + header.size > start + len(chunk):
            chunk = file.read(position, max(_RECOVERY_BYTES, header.size))
            start = position
        check_crc(chunk, position - start, header)
        if header.base_offset < expected_offset or header.last_offset_delta < 0:
            raise CorruptBatch(
                f"batch at byte {position} has offsets {header.base_offset} to"
                f" {header.last_offset} where {expected_offset} was expected"
            )
        yield position, header
        position += header.size
        expected_offset = header.next_offset

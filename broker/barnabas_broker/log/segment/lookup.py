"""From an offset to its batch: near an index entry, and from there header by header.

Offsets in headers have no checksum, and entries of indexes have none either. Both are compared with
their neighbours here.
"""

from barnabas_common.record.batch import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    check_crc,
    parse_header,
)

from barnabas_broker.disk.disk import File
from barnabas_broker.log.index.offset_index import OffsetIndex, OffsetPosition
from barnabas_broker.log.index.time_index import TimestampOffset
from barnabas_broker.log.segment.batch_scan import headers


def locate(file: File, index: OffsetIndex, offset: int) -> tuple[int, BatchHeader] | None:
    """Position and header of the batch that holds `offset`, or of the next one, or None.

    A batch whose own offsets are wrong is found where it stands: after the one before it, and
    before the next one.
    """
    entry = entry_for(file, index, offset)
    expected = index.base_offset
    doubted: tuple[int, BatchHeader] | None = None
    for position, header in headers(file, entry.position, file.size()):
        if position == entry.position > 0:
            expected = entry.offset - header.last_offset_delta
        if doubted is not None:
            before = doubted[1]
            if expected <= before.base_offset < before.next_offset <= header.base_offset:
                found, expected = before.last_offset >= offset, before.next_offset
            else:
                found, expected = header.base_offset > offset, header.base_offset
            if found:
                return doubted
            doubted = None
        if header.base_offset != expected or header.last_offset_delta < 0:
            doubted = position, header
            continue
        if header.last_offset >= offset:
            return position, header
        expected = header.next_offset
    if doubted is None:
        return None
    is_below = expected <= doubted[1].base_offset <= doubted[1].last_offset < offset
    return None if is_below else doubted


def entry_for(file: File, index: OffsetIndex, offset: int) -> OffsetPosition:
    """Where to look for `offset`: at an index entry, if its batch is there, or at the start.

    An index has no checksum. A wrong entry must not make a sound log seem damaged.
    """
    entry = index.lookup(offset)
    start = OffsetPosition(index.base_offset, 0)
    if not 0 < entry.position <= file.size() - HEADER_SIZE:
        return start
    try:
        header = parse_header(file.read(entry.position, HEADER_SIZE))
        # Kafka names the last offset of an append, and where its first batch begins.
        is_there = index.base_offset <= header.base_offset <= entry.offset
    except CorruptBatch:
        is_there = False
    return entry if is_there else start


def has_time(file: File, index: OffsetIndex, entry: TimestampOffset) -> bool:
    """Whether an entry of a time index is right: the batch that holds its offset has its timestamp.

    Raises CorruptBatch for a batch that is damaged.
    """
    found = locate(file, index, entry.offset)
    return found is not None and _is_of(entry, found[1])


def _is_of(entry: TimestampOffset, header: BatchHeader) -> bool:
    return header.base_offset <= entry.offset and header.max_timestamp == entry.timestamp


def is_largest_time(file: File, index: OffsetIndex, entry: TimestampOffset) -> bool:
    """Whether the last entry of a time index has the largest timestamp: no batch says otherwise.
    Asked are the one that it names, and those behind the last entry of the offset index.

    Raises CorruptBatch for a batch that is damaged.
    """
    found = locate(file, index, entry.offset)
    contradicting = [] if found is None or _is_of(entry, found[1]) else [found]
    last = headers(file, entry_for(file, index, index.last_entry().offset).position, file.size())
    contradicting += [one for one in last if one[1].max_timestamp > entry.timestamp]
    for position, header in contradicting:
        check_crc(file.read(position, header.size), 0, header)
    return not contradicting


def end_below(file: File, index: OffsetIndex, offset: int) -> int | None:
    """Where the last batch ends that is entirely below `offset`; None if there is none."""
    end = None
    start = entry_for(file, index, offset - 1).position
    for _, header in headers(file, start, file.size()):
        if header.last_offset >= offset:
            break
        end = header.next_offset if end is None else max(end, header.next_offset)
    return end


def start_of(header: BatchHeader, offset: int) -> int:
    """Where the batch begins that was located for `offset`; `offset` if it does not hold it."""
    return header.base_offset if header.base_offset <= offset <= header.last_offset else offset

"""From a timestamp to an offset: the only lookup for which a broker decodes records.

The time index gives a position before which all records are older. From there the headers of the
batches are read; only the batch that must hold the result is decoded.
"""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas_common.record.batch import BatchHeader
from barnabas_common.record.reader import read_batch

from barnabas_broker.log.segment.batch_scan import headers
from barnabas_broker.log.segment.segment import Segment
from barnabas_broker.log.segment.segment_list import SegmentList


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: SegmentList, timestamp_ms: int, log_start_offset: int
) -> TimestampedOffset | None:
    """The first record with this timestamp or a later one, at `log_start_offset` or above."""
    for segment in segments:
        if segment.largest.timestamp < timestamp_ms:
            continue
        start = max(segment.older_than(timestamp_ms), log_start_offset)
        for position, header in _headers_from(segment, start):
            if header.max_timestamp < timestamp_ms:
                continue
            for record in read_batch(segment.log.read(position, header.size)):
                if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                    return TimestampedOffset(record.timestamp, record.offset, record.leader_epoch)
    return None


def first_of_largest(segments: SegmentList) -> TimestampedOffset | None:
    """The first record with the largest timestamp of the log (KIP-734)."""
    largest = max(segment.largest.timestamp for segment in segments)
    return first_at_or_after(segments, largest, 0) if largest >= 0 else None


def _headers_from(segment: Segment, offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """The headers from the batch that holds `offset` on."""
    found = segment.locate(offset)
    if found is not None:
        yield from headers(segment.log, found[0], segment.size)

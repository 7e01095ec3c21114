"""From a timestamp to an offset: the one question for which a broker decodes records.

The time index leads to a place before which all records are older; from there the batches' headers
are walked, and only the batch that must hold the answer is opened.
"""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.record.batch import BatchHeader
from barnabas.record.reader import read_batch

from barnabas_broker.log.batch_scan import headers
from barnabas_broker.log.segment import Segment
from barnabas_broker.log.segment_list import SegmentList


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: SegmentList, timestamp_ms: int, log_start_offset: int
) -> TimestampedOffset | None:
    """The first record that is not older than the timestamp, at `log_start_offset` or above."""
    for segment in segments:
        if segment.largest.timestamp < timestamp_ms:
            continue
        start = max(segment.time_index.lookup(timestamp_ms).offset, log_start_offset)
        for position, header in _headers_from(segment, start):
            if header.max_timestamp < timestamp_ms:
                continue
            for record in read_batch(segment.log.read(position, header.size)):
                if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                    return TimestampedOffset(record.timestamp, record.offset, record.leader_epoch)
    return None


def first_of_largest(segments: SegmentList) -> TimestampedOffset | None:
    """The first record with the largest timestamp of the log (KIP-734)."""
    segment = max(segments, key=lambda one: one.largest.timestamp)
    largest = segment.largest
    if largest.timestamp < 0:
        return None
    for position, header in _headers_from(segment, largest.offset):
        if header.max_timestamp < largest.timestamp:
            continue
        for record in read_batch(segment.log.read(position, header.size)):
            if record.timestamp == largest.timestamp:
                return TimestampedOffset(record.timestamp, record.offset, record.leader_epoch)
    return None


def _headers_from(segment: Segment, offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """The batches from the one that holds `offset` on."""
    found = segment.locate(offset)
    if found is not None:
        yield from headers(segment.log, found[0], segment.size)

"""Which transaction indexes a start does not believe.

They have no checksum. An entry counts if it fits its neighbours, and if its batches are where it
says. I/O errors are OSError.
"""

import sys
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from barnabas_common.record.batch import CorruptBatch, check_crc

from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_broker.log.segment.segment import Segment

_base_offset = attrgetter("base_offset")


def check_transactions(segments: Sequence[Segment]) -> None:
    """Empty the indexes that cannot belong to the log; they must be rebuilt then."""
    begun_later = sys.maxsize
    for segment in reversed(segments):
        index = segment.txn_index
        if index.is_stale or not (
            index.is_valid(segment.base_offset, segment.next_offset, begun_later)
            and all(_is_in_log(entry, segment, segments) for entry in index.entries())
        ):
            segment.clear_transactions()
        begun_later = min([begun_later, *(entry.first_offset for entry in index.entries())])


def _is_in_log(entry: AbortedTxn, segment: Segment, segments: Sequence[Segment]) -> bool:
    """Whether the marker and the first batch are there, unless the latter was deleted."""
    before = bisect_right(segments, entry.first_offset, key=_base_offset)
    try:
        return _is_of_producer(entry, segment, is_marker=True) and (
            before == 0 or _is_of_producer(entry, segments[before - 1], is_marker=False)
        )
    except CorruptBatch:  # damage of the log is found where the batch is read
        return True


def _is_of_producer(entry: AbortedTxn, segment: Segment, is_marker: bool) -> bool:
    """Raises CorruptBatch if the batch is damaged: then the index may be right."""
    offset = entry.last_offset if is_marker else entry.first_offset
    found = segment.locate(offset)
    if found is None:
        return not is_marker  # compaction has removed the last batches of the segment
    position, header = found
    is_removed = header.base_offset > offset and not is_marker
    names = (header.base_offset, header.producer_id, header.is_transactional, header.is_control)
    if is_removed or names == (offset, entry.producer_id, True, is_marker):
        return True
    check_crc(segment.log.read(position, header.size), 0, header)
    return False

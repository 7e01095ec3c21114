"""One pass over one log (Kafka's `Cleaner`), cut into slices.

Three steps, each a generator that yields after a slice of its I/O, so that the caller can run the
slices off the event loop, wait between them, or give up:

1. `scan`: the headers of the whole log, for its producers and transactions.
2. `build_map`: the dirty part, for the last offset of each key, until the map is full.
3. `write_group`: a run of segments into one new segment with the suffix `.cleaned`, durable.

Then the caller puts the new segment in the place of the others. Reads sealed segments only, except
for the headers of the active one. Raises CorruptBatch for a batch that is damaged, and OSError.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_common.record.batch import (
    BatchHeader,
    Buffer,
    CorruptBatch,
    batches,
    check_crc,
    parse_header,
)

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.disk import Disk, File
from barnabas_broker.log.compaction.batch_filter import (
    decoded,
    empty_batch,
    filter_batch,
    filter_marker,
    is_abort_marker,
)
from barnabas_broker.log.compaction.grouping import SegmentSizes, groups
from barnabas_broker.log.compaction.offset_map import OffsetMap
from barnabas_broker.log.compaction.transactions import CleanedTransactions, ProducerScan
from barnabas_broker.log.compaction.what_stays import PassRules
from barnabas_broker.log.segment.batch_scan import headers
from barnabas_broker.log.segment.segment import PlacedBatch, Segment, new_segment
from barnabas_broker.log.segment.segment_files import CLEANED_SUFFIX


class Source(NamedTuple):
    """A segment of the log as it was when the pass began."""

    segment: Segment
    size: int
    end_offset: int


@dataclass
class Counts:
    """What a pass has done so far."""

    bytes_before: int = 0
    bytes_after: int = 0
    records_before: int = 0
    records_after: int = 0
    segments_before: int = 0
    segments_after: int = 0


@dataclass
class Cleaner:
    """`sources` are all segments, the active one last. I/O is in pieces of `buffer_bytes`."""

    disk: Disk
    directory: str
    config: LogConfig
    sources: Sequence[Source]
    buffer_bytes: int
    producers: ProducerScan = field(default_factory=ProducerScan)
    counts: Counts = field(default_factory=Counts)
    last_marker_gone: int | None = None
    """The offset of the last marker that was left out so far."""
    _segment: Segment | None = None
    _markers: set[int] = field(default_factory=set)
    """The offsets of the markers in the segment that is written."""

    # ---- the first step

    def scan(self) -> Iterator[int]:
        """Note the producers and transactions. Yields the bytes whose headers were read."""
        for source in self.sources:
            slice_bytes = 0
            file = source.segment.log
            for position, header in headers(file, 0, source.size):
                if header.is_control and header.record_count:
                    marker = file.read(position, header.size)
                    self.producers.marker(header, is_abort_marker(marker, header))
                elif not header.is_control:
                    self.producers.batch(header)
                slice_bytes += header.size
                if slice_bytes >= self.buffer_bytes:
                    yield slice_bytes
                    slice_bytes = 0

    # ---- the second step

    def build_map(self, offsets: OffsetMap, start: int, end: int) -> Iterator[int]:
        """Put the keys from `start` to below `end` into the map. Yields the bytes read."""
        # The markers of earlier ones are not read here, so they would seem to go on.
        aborted = [one for one in self.producers.aborted if one.last_offset >= start]
        transactions = CleanedTransactions(aborted)
        for source in self.sources:
            if source.end_offset <= start or source.segment.base_offset >= end:
                continue
            found = source.segment.locate(start)
            if found is not None:
                for chunk in _chunks(source, found[0], self.buffer_bytes):
                    for header, batch in _verified(chunk):
                        if not _map_batch(header, batch, offsets, start, transactions):
                            return
                    yield len(chunk)
            offsets.account_for(min(source.end_offset, end) - 1)

    # ---- the third step

    def groups(self, end: int) -> list[list[Source]]:
        """The segments that start below `end`, in runs that become one segment each."""
        by_base = {one.segment.base_offset: one for one in self.sources[:-1]}
        sizes = [
            SegmentSizes(
                base,
                one.end_offset,
                one.size,
                one.segment.offset_index.size_bytes,
                one.segment.time_index.size_bytes,
            )
            for base, one in by_base.items()
            if base < end
        ]
        return [[by_base[one.base_offset] for one in run] for run in groups(sizes, self.config)]

    def open_segment(self, group: Sequence[Source]) -> None:
        """Open the empty segment that a group is written into."""
        base_offset = group[0].segment.base_offset
        segment = new_segment(self.disk, self.directory, base_offset, self.config, CLEANED_SUFFIX)
        self._segment = segment
        if segment.size:  # of a pass that could not clear up
            segment.log.truncate(0)

    def write_group(
        self, group: Sequence[Source], rules: PassRules, transactions: CleanedTransactions
    ) -> Iterator[int]:
        """Write what stays of the group, and make it durable. Yields the bytes read and written.

        `transactions` are the same for all groups of a pass.
        """
        cleaned = self._segment
        assert cleaned is not None
        self._markers.clear()
        for source in group:
            for chunk in _chunks(source, 0, self.buffer_bytes):
                written = self._write_chunk(chunk, cleaned, rules, transactions)
                self.counts.bytes_before += len(chunk)
                self.counts.bytes_after += written
                yield len(chunk) + written
            for aborted in source.segment.txn_index.entries():
                if aborted.last_offset in self._markers:
                    cleaned.txn_index.add(aborted)
        cleaned.next_offset = group[-1].end_offset
        cleaned.seal()
        cleaned.flush(indexes_too=True)
        self.counts.segments_before += len(group)
        self.counts.segments_after += 1

    def take_segment(self) -> Segment:
        """The segment that was written; it is the caller's from now on."""
        segment, self._segment = self._segment, None
        assert segment is not None
        return segment

    def remove_segment(self) -> None:
        """Remove the segment that is not finished, also one whose opener was not waited for."""
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.destroy()

    def _write_chunk(
        self, chunk: bytes, cleaned: Segment, rules: PassRules, transactions: CleanedTransactions
    ) -> int:
        buffers: list[Buffer] = []
        placed: list[PlacedBatch] = []
        for header, batch in _verified(chunk):
            self.counts.records_before += header.record_count
            kept = _kept(header, batch, rules, transactions)
            if header.is_control and header.record_count and _has_no_records(kept):
                self.last_marker_gone = header.last_offset
            if kept is not None:
                after = parse_header(kept)
                self.counts.records_after += after.record_count
                if after.is_control and after.record_count:
                    self._markers.add(after.last_offset)
                buffers.append(kept)
                placed.append(PlacedBatch(after.last_offset, after.size, after.max_timestamp))
        if buffers:
            cleaned.append(buffers, placed, self.config.index_interval_bytes)
        return sum(batch.size for batch in placed)


def _map_batch(
    header: BatchHeader,
    batch: memoryview,
    offsets: OffsetMap,
    start: int,
    transactions: CleanedTransactions,
) -> bool:
    """Put a batch into the map; False if it is full, and the batch not accounted for."""
    if header.is_control:
        if header.record_count:
            transactions.marker_may_go(header, is_abort_marker(batch, header))
    elif not transactions.batch_is_aborted(header) and header.last_offset >= start:
        _, records = decoded(batch, header)
        for record in records:
            if record.key is not None and record.offset >= start:
                if offsets.is_full:
                    return False
                offsets.put(record.key, record.offset)
    offsets.account_for(header.last_offset)
    return True


def _kept(
    header: BatchHeader, batch: memoryview, rules: PassRules, transactions: CleanedTransactions
) -> Buffer | None:
    if header.is_control:
        may_go = not header.record_count or transactions.marker_may_go(
            header, is_abort_marker(batch, header)
        )
        return filter_marker(batch, header, rules, may_go)
    if transactions.batch_is_aborted(header) or not header.record_count:
        return empty_batch(header) if rules.stays_without_records(header) else None
    return filter_batch(batch, header, rules)


def _has_no_records(kept: Buffer | None) -> bool:
    return kept is None or not parse_header(kept).record_count


def _chunks(source: Source, position: int, buffer_bytes: int) -> Iterator[bytes]:
    """Whole batches, from the one at `position` to the end of the segment as it was."""
    while position < source.size:
        chunk = _whole_batches(source.segment.log, position, source.size, buffer_bytes)
        yield chunk
        position += len(chunk)


def _whole_batches(file: File, position: int, end: int, buffer_bytes: int) -> bytes:
    data = file.read(position, min(buffer_bytes, end - position))
    size = sum(header.size for _, header in batches(data))
    if size == 0:  # a batch larger than the buffer, or no batch
        header = parse_header(data)
        data = file.read(position, header.size)
        size = header.size
        if position + size > end or len(data) < size:
            raise CorruptBatch(f"batch at byte {position} of {size} bytes ends after {end}")
    return data[:size]


def _verified(chunk: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    view = memoryview(chunk)
    for position, header in batches(chunk):
        check_crc(chunk, position, header)
        yield header, view[position : position + header.size]

"""One segment of a log: contiguous batches in `<base>.log`, and its indexes.

Only the last segment of a log is appended to; the others are sealed. Called by the log on the event
loop, and by recovery and flushes off it. I/O errors are OSError.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas_common.record.batch import HEADER_SIZE, BatchHeader, CorruptBatch, parse_header

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.disk import Buffer, Disk
from barnabas_broker.log.index.time_index import NO_TIMESTAMP, TimestampOffset
from barnabas_broker.log.segment.batch_scan import PLACE_SIZE, cut_to_whole_batches, headers
from barnabas_broker.log.segment.lookup import (
    end_below,
    entry_for,
    has_time,
    is_largest_time,
    locate,
    start_of,
)
from barnabas_broker.log.segment.roll import ActiveSegment
from barnabas_broker.log.segment.segment_files import SegmentFiles


class PlacedBatch(NamedTuple):
    """What the indexes need of a batch; `size` is in bytes."""

    last_offset: int
    size: int
    max_timestamp: int


class Piece(NamedTuple):
    """Batches that were read, and where the next one starts."""

    data: bytes
    next_offset: int
    next_position: int


class Segment(SegmentFiles):
    """`largest` is the largest timestamp, with the last offset of its batch.

    `next_offset` follows the last batch; in a sealed segment that was not scanned it is the base of
    the next segment. `is_verified`: recovery has just read it and its checksums. `suffix` follows
    the names of all files.
    """

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, config: LogConfig, suffix: str = ""
    ) -> None:
        super().__init__(disk, directory, base_offset, config.segment_index_bytes, suffix)
        self.next_offset = base_offset
        self.largest = TimestampOffset(NO_TIMESTAMP, base_offset)
        self.created_ms = 0
        self.jitter_ms = 0
        self.is_verified = False
        self._first_timestamp: int | None = None
        self._bytes_since_entry = 0

    def create_indexes(self) -> None:
        """Create the indexes, empty."""
        self.offset_index.create()
        self.time_index.create()
        self.txn_index.create()

    def open_indexes(self) -> bool:
        """Open the index files; False if one is missing or cannot belong to the log.

        That of transactions is judged by `check_transactions` of `stored_transactions`.
        """
        self.txn_index.is_stale = not self.txn_index.open_sealed()
        try:
            valid = self.offset_index.open_sealed() and self.time_index.open_sealed()
        except FileNotFoundError:
            return False
        if valid and len(self.offset_index):
            # The first batch has no entry, so none has position 0, unless the file was never
            # truncated to its used size.
            valid = 0 < self.offset_index.last_entry().position < self.size
        if valid:
            self.largest = self.time_index.last_entry()
        return valid and self._has_right_times()

    def _has_right_times(self) -> bool:
        """Retention and lookups by time rely on `largest`. The time index has an entry if there is
        a timestamp: one is added when the segment is sealed or closed."""
        if not len(self.time_index):
            return not self._begins_with_timestamp()
        try:
            return is_largest_time(self.log, self.offset_index, self.largest)
        except CorruptBatch:  # damage of the log is found where the batch is read
            return True

    def _begins_with_timestamp(self) -> bool:
        try:
            return self.first_timestamp() >= 0
        except CorruptBatch:
            return True

    def clear_transactions(self) -> None:
        """Empty the transaction index, which must be rebuilt then."""
        self.begin_rebuild()
        self.txn_index.create()
        self.txn_index.is_stale = True

    @property
    def size(self) -> int:
        return self.log.size()

    # ---- writing

    def append(
        self, buffers: Sequence[Buffer], batches: Sequence[PlacedBatch], index_interval: int
    ) -> None:
        """Append batches, and index them."""
        position = self.log.append(buffers)
        for batch in batches:
            self.note(batch, position, index_interval)
            position += batch.size

    def note(self, batch: PlacedBatch, position: int, index_interval: int) -> None:
        """Index a batch at `position`, the end of the batches indexed so far.

        The bytes since the last entry are counted before this batch, so that the first batch of a
        segment never gets an entry: a lookup starts there anyway.
        """
        if batch.max_timestamp > self.largest.timestamp:
            self.largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
        if self._bytes_since_entry > index_interval:
            self.offset_index.add(batch.last_offset, position)
            self.time_index.add(*self.largest)
            self._bytes_since_entry = 0
        self._bytes_since_entry += batch.size
        self.next_offset = batch.last_offset + 1
        if position == 0:
            self._first_timestamp = batch.max_timestamp

    def seal(self) -> None:
        """End the appends: add the largest timestamp to the time index, and save the indexes."""
        self.save_indexes()
        self.forget_indexes()

    def forget_indexes(self) -> None:
        """Release the entries in memory, after `save_indexes`. Cannot fail."""
        self.offset_index.forget()
        self.time_index.forget()
        self.txn_index.forget()

    def save_indexes(self) -> None:
        """Like `seal`, but the segment stays active."""
        self.time_index.add(*self.largest, even_if_full=True)
        self.offset_index.save()
        self.time_index.save()
        self.txn_index.save()

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and all later ones; the segment becomes active.

        `next_offset` becomes `offset`, or the base of a batch with `offset` in its middle.
        """
        self.unseal_indexes()
        found = self.locate(offset)
        if found is not None:
            position, header = found
            offset = start_of(header, offset)
            self.log.truncate(position)
            # Flush before new batches overwrite the removed ones: a power loss may keep the older
            # of two writes to a sector, and the checksum of a batch covers neither its offset nor
            # its epoch, so a removed record would be taken for the one written in its place.
            self.log.flush()
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.catch_up()
        self.next_offset = offset

    def unseal_indexes(self) -> None:
        """Read the index entries into memory, so that a sealed segment can be appended to."""
        self.offset_index.unseal()
        self.time_index.unseal()
        self.txn_index.unseal()

    def catch_up(self) -> None:
        """Read the headers of the batches after the last index entry.

        Raises:
            CorruptBatch: the bytes there are not whole batches.
        """
        self.unseal_indexes()
        self.largest = self.time_index.last_entry()
        self._first_timestamp = None
        self.next_offset = self.base_offset
        start = self.offset_index.last_entry().position
        for _, header in headers(self.log, start, self.size):
            if header.max_timestamp > self.largest.timestamp:
                self.largest = TimestampOffset(header.max_timestamp, header.last_offset)
            self.next_offset = header.next_offset
        self._bytes_since_entry = self.size - start

    def reset(self) -> None:
        """Clear the indexes and all that derives from the batches, before they are read again."""
        self.create_indexes()
        self.txn_index.is_stale = True
        self.largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self.next_offset = self.base_offset
        self._first_timestamp = None
        self._bytes_since_entry = 0

    # ---- reading

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """Position and header of the batch that holds `offset`, or of the next one, or None."""
        return locate(self.log, self.offset_index, offset)

    def older_than(self, timestamp_ms: int) -> int:
        """An offset of this segment below which all records have earlier timestamps."""
        entry = self.time_index.lookup(timestamp_ms - 1)
        if entry.timestamp != NO_TIMESTAMP:
            with suppress(CorruptBatch):
                if has_time(self.log, self.offset_index, entry):
                    return entry.offset
        return self.base_offset

    def end_below(self, offset: int) -> int | None:
        """Where the last batch ends that is entirely below `offset`; None if there is none."""
        return end_below(self.log, self.offset_index, offset)

    def last_batch(self) -> BatchHeader | None:
        """The header of the last batch; None without one. Raises CorruptBatch."""
        last = None
        start = entry_for(self.log, self.offset_index, self.next_offset).position
        for _, header in headers(self.log, start, self.size):
            last = header
        return last

    def read(
        self, position: int, offset: int, max_bytes: int, end_offset: int, min_one: bool
    ) -> Piece:
        """Whole batches from the one at `position`, which holds `offset`, all below `end_offset`.

        With `min_one`, the first is read even if it is larger than `max_bytes`.

        Raises:
            CorruptBatch: the first cannot be right.
        """
        end_offset = min(end_offset, self.next_offset)
        left = self.size - position
        data = self.log.read(position, min(max(max_bytes, PLACE_SIZE), left))
        cut = cut_to_whole_batches(data, offset, end_offset, len(data) == left)
        if cut.size == 0 and cut.first_size and min_one:
            data = self.log.read(position, min(cut.first_size + PLACE_SIZE, left))
            cut = cut_to_whole_batches(data, offset, end_offset, len(data) == left)
        if cut.size < len(data):
            data = data[: cut.size]
        return Piece(data, cut.next_offset, position + cut.size)

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, which gives the segment's age; or -1."""
        if self._first_timestamp is None and self.size >= HEADER_SIZE:
            first = parse_header(self.log.read(0, HEADER_SIZE))
            self._first_timestamp = first.max_timestamp
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def largest_timestamp(self) -> int:
        """The largest timestamp of the records; without one, the time of the file's last change."""
        if self.largest.timestamp >= 0:
            return self.largest.timestamp
        return self._disk.modified_ms(self.path)

    def roll_state(self) -> ActiveSegment:
        return ActiveSegment(
            self.base_offset,
            self.size,
            self.first_timestamp(),
            self.created_ms,
            self.jitter_ms,
            self.offset_index.is_full or self.time_index.is_full,
        )


def new_segment(
    disk: Disk, directory: str, base_offset: int, config: LogConfig, suffix: str = ""
) -> Segment:
    """Create an empty segment. On OSError none of its files is left open or on the disk."""
    segment = Segment(disk, directory, base_offset, config, suffix)
    try:
        segment.create_indexes()
    except OSError:
        with suppress(OSError):
            segment.destroy()
        raise
    return segment

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
from barnabas_broker.log.index import offset_index, time_index, transaction_index
from barnabas_broker.log.index.offset_index import OffsetIndex, OffsetPosition
from barnabas_broker.log.index.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset
from barnabas_broker.log.index.transaction_index import TransactionIndex
from barnabas_broker.log.segment.batch_scan import PLACE_SIZE, cut_to_whole_batches, headers
from barnabas_broker.log.segment.roll import ActiveSegment

LOG_SUFFIX = ".log"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
"""A segment that compaction is writing."""
SWAP_SUFFIX = ".swap"
"""A whole segment that compaction is putting in the place of others."""
UNFINISHED_SUFFIX = ".tmp"
"""A file without its name yet; a start removes it."""


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


class Segment:
    """`largest` is the largest timestamp, with the last offset of its batch.

    `next_offset` follows the last batch; in a sealed segment that was not scanned it is the base of
    the next segment. `is_verified`: recovery has just read it and its checksums. `suffix` follows
    the names of all files.
    """

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, config: LogConfig, suffix: str = ""
    ) -> None:
        self._disk = disk
        self._directory = directory
        self.base_offset = base_offset
        index_bytes = config.segment_index_bytes
        path = f"{directory}/{base_offset:020d}"
        self.path = path + LOG_SUFFIX + suffix
        offsets, times = path + offset_index.SUFFIX + suffix, path + time_index.SUFFIX + suffix
        self.offset_index = OffsetIndex(disk, offsets, base_offset, index_bytes)
        self.time_index = TimeIndex(disk, times, base_offset, index_bytes)
        transactions = path + transaction_index.SUFFIX + suffix
        self.txn_index = TransactionIndex(disk, transactions)
        self.log = disk.open(self.path, create=True)
        self.next_offset = base_offset
        self.largest = TimestampOffset(NO_TIMESTAMP, base_offset)
        self.created_ms = 0
        self.jitter_ms = 0
        self.is_deleted = False
        self.is_verified = False
        self._first_timestamp: int | None = None
        self._bytes_since_entry = 0
        self._is_in_rebuild = False

    def create_indexes(self) -> None:
        """Create the indexes, empty."""
        self.offset_index.create()
        self.time_index.create()
        self.txn_index.create()

    def open_indexes(self) -> bool:
        """Open the index files; False if one is missing or cannot belong to the log.

        That of transactions is judged by `check_transactions`.
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
        return valid and (len(self.time_index) > 0 or not self._begins_with_timestamp())

    def _begins_with_timestamp(self) -> bool:
        """Then the time index has an entry: one is added when the segment is sealed or closed."""
        try:
            return self.first_timestamp() >= 0
        except CorruptBatch:
            return True

    def check_transactions(self) -> None:
        """Clear the transaction index if it cannot belong to the log; it must be rebuilt then."""
        index = self.txn_index
        if index.is_stale or not index.is_valid(self.base_offset, self.next_offset):
            self.begin_rebuild()
            index.create()
            index.is_stale = True

    def begin_rebuild(self) -> None:
        """Take the name of the offset index away, durably, before any index is changed.

        A start rebuilds all indexes of a segment that has none. Without this, one after a crash
        would take for complete what was rebuilt in part. The last segment does not need it: a start
        after a crash always rebuilds its indexes.
        """
        if self._is_in_rebuild:
            return
        name = self.offset_index.path
        if self._disk.exists(name):
            self._disk.rename(name, name + UNFINISHED_SUFFIX, sync=False)
            self._disk.sync_directory(self._directory)
        self.offset_index.path = name + UNFINISHED_SUFFIX
        self._is_in_rebuild = True

    def end_rebuild(self) -> None:
        """Give the name back, durably, once all indexes are saved and durable."""
        if self._is_in_rebuild:
            self.sync_indexes()
            name = self.offset_index.path.removesuffix(UNFINISHED_SUFFIX)
            self._disk.rename(self.offset_index.path, name)
            self.offset_index.path = name
            self._is_in_rebuild = False

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

    def flush(self, indexes_too: bool) -> None:
        """fsync. May run off the event loop during appends."""
        self.log.flush()
        if indexes_too:
            self.sync_indexes()

    def sync_indexes(self) -> None:
        """fsync the saved indexes."""
        self.offset_index.sync()
        self.time_index.sync()
        self.txn_index.sync()

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
        """Position and header of the batch that holds `offset`, or of the next one, or None.

        A batch whose own offsets are wrong is found where it stands: after the one before it, and
        before the next one.
        """
        entry = self._entry_for(offset)
        expected = self.base_offset
        doubted: tuple[int, BatchHeader] | None = None
        for position, header in headers(self.log, entry.position, self.size):
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

    def _entry_for(self, offset: int) -> OffsetPosition:
        """The highest index entry for an offset whose batch is there, or the start of the segment.

        An index has no checksum, and a wrong entry would lead past the records asked for.
        """
        entry = self.offset_index.lookup(offset)
        while entry.position and not self._is_at(entry):
            entry = self.offset_index.lookup(entry.offset - 1)
        return entry

    def _is_at(self, entry: OffsetPosition) -> bool:
        if not 0 < entry.position <= self.size - HEADER_SIZE:
            return False
        try:
            header = parse_header(self.log.read(entry.position, HEADER_SIZE))
        except CorruptBatch:
            return False
        return header.last_offset == entry.offset

    def end_below(self, offset: int) -> int | None:
        """Where the last batch ends that is entirely below `offset`; None if there is none."""
        end = None
        start = self._entry_for(offset - 1).position
        for _, header in headers(self.log, start, self.size):
            if header.last_offset >= offset:
                break
            end = header.next_offset if end is None else max(end, header.next_offset)
        return end

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

    # ---- the end

    def mark_deleted(self) -> None:
        """Rename the files to `.deleted`, not durably; they stay readable."""
        if self.is_deleted:
            return
        self.is_deleted = True
        for path in self._paths():
            if self._disk.exists(path):
                self._disk.rename(path, path + DELETED_SUFFIX, sync=False)

    def unmark_deleted(self) -> None:
        """Undo `mark_deleted`, not yet durably. Needs no descriptor."""
        self.is_deleted = False
        for path in self._paths():
            if self._disk.exists(path + DELETED_SUFFIX):
                self._disk.rename(path + DELETED_SUFFIX, path, sync=False)

    def change_suffix(self, old: str, new: str) -> None:
        """Rename the files, the log first, not durably. Needs no descriptor."""
        paths = self._paths()
        renamed = [path.removesuffix(old) + new for path in paths]
        for before, after in zip(paths, renamed, strict=True):
            if self._disk.exists(before):
                self._disk.rename(before, after, sync=False)
        self.path, self.offset_index.path, self.time_index.path, self.txn_index.path = renamed

    def destroy(self) -> None:
        """Close and remove the files, under either name."""
        self.close()
        for path in self._paths():
            self._disk.remove(path + DELETED_SUFFIX if self.is_deleted else path)

    def close(self) -> None:
        self.log.close()

    def _paths(self) -> tuple[str, ...]:
        return self.path, self.offset_index.path, self.time_index.path, self.txn_index.path


def start_of(header: BatchHeader, offset: int) -> int:
    """Where the batch begins that was located for `offset`; `offset` if it does not hold it."""
    return header.base_offset if header.base_offset <= offset <= header.last_offset else offset


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

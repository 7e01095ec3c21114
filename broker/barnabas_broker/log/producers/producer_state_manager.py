"""The producers of one log, and their snapshots on disk (Kafka's `ProducerStateManager`).

Every batch that is appended, by a leader or from one, changes its producer's entry. So a replica
that becomes leader knows at once what came before. What a restart or a truncation needs is read
from the newest snapshot, and from the headers of the batches after it; records are not decoded.

A snapshot is a claim about the records below its offset. None may outlive them: one that lies above
the end of a truncated log is removed, durably, before anything is written there again.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from barnabas_common.record.batch import BatchHeader, CorruptBatch
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk, is_out_of_descriptors
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.producers.producer_state import (
    ALL_NEW,
    Known,
    after_batch,
    after_marker,
    check,
    has_expired,
    share_of,
)
from barnabas_broker.log.producers.snapshot_file import (
    decode_snapshot,
    encode_snapshot,
    name_of,
    offsets_in,
)
from barnabas_broker.log.segment.batch_scan import headers
from barnabas_broker.log.segment.segment import Segment

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class PendingSnapshot:
    """The entries as they were at `offset`, to be written. `is_abandoned`: the log was truncated
    below it in the meantime."""

    offset: int
    entries: Collection[bytes]
    number: int
    is_abandoned: bool = False


class ProducerStateManager:
    """`entries` by producer id, packed as `producer_state` says. Called on the event loop, except
    `write_aside`; and `load` and `close`, which may run off it. I/O errors are OSError."""

    def __init__(self, disk: Disk, directory: str, name: TopicPartition) -> None:
        self.entries: dict[int, bytes] = {}
        self._disk = disk
        self._directory = directory
        self._name = name
        self._snapshots: list[int] = []
        self._pending: list[PendingSnapshot] = []
        self._writing: list[PendingSnapshot] = []
        self._taken = 0
        self._changed_up_to = 0
        self._removals_are_durable = True

    @property
    def snapshot_offsets(self) -> list[int]:
        """The offsets of the snapshots on disk, ascending."""
        return list(self._snapshots)

    # ---- appends

    def check(self, headers: Sequence[BatchHeader]) -> Known:
        """Return which of these batches were appended earlier.

        Raises as `share_of` and `check` of `producer_state`.
        """
        share = share_of(headers)
        return ALL_NEW if share is None else check(self.entries.get(share.producer_id), share)

    def note(self, header: BatchHeader) -> None:
        """Take over a batch that was appended; its header has its offsets."""
        producer_id = header.producer_id
        if producer_id < 0:
            return
        entry = self.entries.get(producer_id)
        if not header.is_control:
            self.entries[producer_id] = after_batch(entry, header)
        elif header.record_count:
            self.entries[producer_id] = after_marker(entry, header)
        self._changed_up_to = header.next_offset

    def expire(self, producer_ids: Iterable[int], now_ms: int, expiration_ms: int) -> int:
        """Forget those of these producers that were silent for so long; return their number."""
        entries = self.entries
        gone = [
            producer_id
            for producer_id in producer_ids
            if producer_id in entries and has_expired(entries[producer_id], now_ms, expiration_ms)
        ]
        for producer_id in gone:
            del entries[producer_id]
        return len(gone)

    # ---- writing snapshots

    def take_snapshot(self, offset: int) -> None:
        """Note the entries as they are, where a segment begins; see `take_pending`."""
        if offset not in self._snapshots:
            self._taken += 1
            entries = list(self.entries.values())
            self._pending.append(PendingSnapshot(offset, entries, self._taken))

    def take_pending(self) -> list[PendingSnapshot]:
        """The snapshots to write: `write_aside` on any thread, then `put_in_place`."""
        taken, self._pending = self._pending, []
        self._writing += taken
        return taken

    def write_aside(self, snapshot: PendingSnapshot) -> None:
        """Write a file that has not got its name yet. Changes nothing in memory.

        Without an fsync: after a power loss the checksum shows that it is torn, and an older one is
        used.
        """
        path = self._path_aside(snapshot)
        self._disk.remove(path)
        with closing(self._disk.open(path, create=True)) as file:
            file.append([encode_snapshot(snapshot.entries)])

    def put_in_place(self, snapshot: PendingSnapshot) -> None:
        """Give the file its name, unless it was abandoned. A power loss may undo that."""
        path = self._path_aside(snapshot)
        if snapshot.is_abandoned:
            self._disk.remove(path)
        else:
            self._disk.rename(path, self._path(snapshot.offset), sync=False)
            self._add(snapshot.offset)
        self.give_up(snapshot)

    def give_up(self, snapshot: PendingSnapshot) -> None:
        """Write it no more; a restart reads more of the log without it."""
        if snapshot in self._writing:
            self._writing.remove(snapshot)

    def write_pending(self) -> None:
        """Write the snapshots now, unless no file descriptor is left."""
        for snapshot in self.take_pending():
            try:
                self.write_aside(snapshot)
                self.put_in_place(snapshot)
            except OSError as error:
                self.give_up(snapshot)
                if not is_out_of_descriptors(error):
                    raise

    def close(self, end_offset: int) -> None:
        """Write a snapshot at the end of the log, durably, and no others."""
        self._abandon_above(-1)
        if end_offset not in self._snapshots:
            data = encode_snapshot(self.entries.values())
            self._disk.write_file(self._path(end_offset), data)
            self._add(end_offset)

    # ---- reading them

    def load(self, segments: Sequence[Segment], end_offset: int, is_clean: bool) -> None:
        """Read the newest snapshot and what follows it. A log that was closed cleanly and has never
        had a snapshot is from a time without idempotent producers."""
        first, last = segments[0].base_offset, segments[-1].base_offset
        names = offsets_in(self._disk.list(self._directory))
        self._snapshots = list(names)
        self._remove(offset for offset in names if not first <= offset <= end_offset)
        bases = {segment.base_offset for segment in segments}
        strays = [offset for offset in self._snapshots if offset not in bases]
        newest = strays[-1:] if strays and strays[-1] > last else []
        self._remove(offset for offset in strays if offset not in newest)
        self._sync_removals()
        if names or not is_clean:
            self._read(segments, end_offset)

    def _read(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Set the entries to what snapshots and log say."""
        start = segments[0].base_offset
        self.entries, self._changed_up_to = {}, 0
        for offset in reversed([one for one in self._snapshots if one <= end_offset]):
            entries = self._read_snapshot(offset)
            if entries is not None:
                self.entries, start = entries, offset
                self._changed_up_to = offset if entries else 0
                break
        for segment in segments:
            if segment.next_offset <= start or segment.base_offset >= end_offset:
                continue
            try:
                for _, header in headers(segment.log, 0, segment.size):
                    if header.base_offset >= start and header.producer_id >= 0:
                        self.note(header)
            except CorruptBatch as error:  # readers will meet it; the rest can still be used
                logger.error("%s: producers of %s: %s", self._name, segment.path, error)

    def _read_snapshot(self, offset: int) -> dict[int, bytes] | None:
        try:
            return decode_snapshot(self._disk.read_file(self._path(offset)))
        except MalformedCheckpoint as error:
            logger.warning("%s: %s is not used: %s", self._name, name_of(offset), error)
            self._remove([offset])
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise
        return None

    # ---- truncation, retention, compaction

    def begin_truncation(self, end_offset: int) -> None:
        """Remove the snapshots above the future end of the log, durably, before it is truncated."""
        self._abandon_above(end_offset)
        self._remove(offset for offset in self.snapshot_offsets if offset > end_offset)
        self._sync_removals()

    def end_truncation(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Forget the batches that were removed."""
        if self._changed_up_to > end_offset:
            self._read(segments, end_offset)

    def clear(self) -> None:
        """Forget everything: the log begins at another offset."""
        self.begin_truncation(-1)
        self.entries, self._changed_up_to = {}, 0

    def remove_snapshots(self, offsets: Collection[int]) -> None:
        """Remove the snapshots at these offsets, where no segment begins any more."""
        self._remove(offset for offset in self.snapshot_offsets if offset in offsets)

    def remove_snapshots_below(self, offset: int) -> None:
        """Remove the snapshots from which the log cannot be read on any more."""
        self._remove(one for one in self.snapshot_offsets if one < offset)

    def _abandon_above(self, offset: int) -> None:
        self._pending = [one for one in self._pending if one.offset <= offset]
        for snapshot in self._writing:
            snapshot.is_abandoned |= snapshot.offset > offset

    def _add(self, offset: int) -> None:
        self._snapshots = sorted({*self._snapshots, offset})

    def _remove(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            self._removals_are_durable = False
            self._disk.remove(self._path(offset))
            self._snapshots.remove(offset)

    def _sync_removals(self) -> None:
        if not self._removals_are_durable:
            self._disk.sync_directory(self._directory)
            self._removals_are_durable = True

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{name_of(offset)}"

    def _path_aside(self, snapshot: PendingSnapshot) -> str:
        return f"{self._path(snapshot.offset)}.{snapshot.number}.tmp"

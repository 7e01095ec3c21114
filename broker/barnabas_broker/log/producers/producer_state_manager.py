"""The producers of one log, and their snapshots on disk (Kafka's `ProducerStateManager`).

Every batch that is appended, by a leader or from one, changes its producer's entry. So a replica
that becomes leader knows at once what came before. What a restart or a truncation needs is read
from the newest snapshot, and from the headers of the batches after it; records are not decoded.

A snapshot is a claim about the records below its offset. None may outlive them: one that lies above
the end of a truncated log is removed, durably, before anything is written there again.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from barnabas_common.errors import OutOfOrderSequenceNumberError
from barnabas_common.record.batch import BatchHeader, CorruptBatch
from barnabas_common.record.transactional import EndTransactionMarker, marker_in
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk, is_out_of_descriptors
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_broker.log.producers.producer_state import (
    ALL_NEW,
    Known,
    Share,
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
from barnabas_broker.log.producers.transactions import (
    TransactionTable,
    check_coordinator_epoch,
    check_epoch,
    check_in_transaction,
    has_ongoing,
)
from barnabas_broker.log.producers.verification import (
    NOT_NEEDED,
    VerificationGuard,
    Verifications,
)
from barnabas_broker.log.segment.batch_scan import DamagedBatch, headers, verified_batches
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
    """`entries` by producer id, packed as `producer_state` says; `transactions` are derived from
    them. Called on the event loop, except `write_aside`; and `load` and `close`, which may run off
    it. I/O errors are OSError."""

    def __init__(self, disk: Disk, directory: str, name: TopicPartition) -> None:
        self.entries: dict[int, bytes] = {}
        self.transactions = TransactionTable()
        self.verifications = Verifications()
        self._disk = disk
        self._directory = directory
        self._name = name
        self._snapshots: list[int] = []
        self._pending: list[PendingSnapshot] = []
        self._writing: list[PendingSnapshot] = []
        self._taken = 0
        self._changed_up_to = 0
        self._removals_are_durable = True
        self._silent: dict[int, bytes] = {}

    @property
    def snapshot_offsets(self) -> list[int]:
        """The offsets of the snapshots on disk, ascending."""
        return list(self._snapshots)

    # ---- appends

    def check(
        self,
        batches: Sequence[tuple[BatchHeader, memoryview]],
        origin: AppendOrigin,
        guard: VerificationGuard | None,
    ) -> Known:
        """Return which of these batches were appended earlier.

        `guard` shows that the coordinator knows of the transaction that a batch may begin. Raises
        as `share_of` and `check` of `producer_state` and the checks of `transactions`.
        """
        if origin is AppendOrigin.COORDINATOR:
            for header, data in batches:
                if header.producer_id >= 0:
                    self._check_coordinators(header, data, guard)
            return ALL_NEW
        share = share_of([header for header, _ in batches])
        return ALL_NEW if share is None else self._check_clients(share, guard)

    def _check_coordinators(
        self, header: BatchHeader, data: memoryview, guard: VerificationGuard | None
    ) -> None:
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        check_epoch(entry, header)
        if not header.is_control:
            check_in_transaction(entry, header, self.verifications.holds(producer_id, guard))
        elif (marker := marker_in(data)) is not None:
            check_coordinator_epoch(entry, header, marker)

    def _check_clients(self, share: Share, guard: VerificationGuard | None) -> Known:
        producer_id, first = share.producer_id, share.batches[0]
        entry = self.entries.get(producer_id)
        known = check(entry, share)
        if known.batches == len(share.batches):
            return known
        is_verified = self.verifications.holds(producer_id, guard)
        check_in_transaction(entry, first, is_verified)
        if not is_verified or guard is None or guard is NOT_NEEDED or known.batches:
            return known
        if first.base_sequence > guard.lowest_sequence:
            raise OutOfOrderSequenceNumberError(
                f"producer id {producer_id}: sequence {first.base_sequence}, while"
                f" {guard.lowest_sequence} waits for its transaction to be verified"
            )
        return known

    def verification_for(self, header: BatchHeader, now_ms: int) -> VerificationGuard | None:
        """The guard that a transaction's first batch needs; None for a later batch."""
        if has_ongoing(self.entries.get(header.producer_id), header.producer_epoch):
            return None
        return self.verifications.begin(
            header.producer_id, header.producer_epoch, header.base_sequence, now_ms
        )

    def note(
        self, header: BatchHeader, marker: EndTransactionMarker | None = None
    ) -> AbortedTxn | None:
        """Take over a batch that was appended; its header has its offsets. `marker` is what a
        control batch contains. Returns the transaction that it aborts."""
        producer_id = header.producer_id
        if producer_id < 0:
            return None
        entry = self.entries.get(producer_id)
        self._changed_up_to = header.next_offset
        if header.is_transactional:
            self.verifications.end(producer_id)
        if not header.is_control:
            self.entries[producer_id] = after_batch(entry, header)
            if header.is_transactional:
                self.transactions.begin(producer_id, header.base_offset)
        elif marker is not None:
            self.entries[producer_id] = after_marker(entry, header, marker.coordinator_epoch)
            return self.transactions.complete(producer_id, header.last_offset, not marker.commit)
        return None

    def expire(self, producer_ids: Iterable[int], now_ms: int, expiration_ms: int) -> int:
        """Forget those of these producers that were silent for so long; return their number.

        An entry has the time of the producer's records, which may be old ones that it copies. So it
        goes only if the look before has found it as it is now.
        """
        gone = 0
        for producer_id in producer_ids:
            entry, before = self.entries.get(producer_id), self._silent.pop(producer_id, None)
            if entry is None or not has_expired(entry, now_ms, expiration_ms):
                continue
            if entry == before:
                del self.entries[producer_id]
                gone += 1
            else:
                self._silent[producer_id] = entry
        return gone

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

    def load(
        self, segments: Sequence[Segment], end_offset: int, is_clean: bool
    ) -> DamagedBatch | None:
        """Read the newest snapshot and what follows it, and return the first damaged batch of that.

        A log that was closed cleanly and has never had a snapshot is from a time without idempotent
        producers.
        """
        first, last = segments[0].base_offset, segments[-1].base_offset
        names = offsets_in(self._disk.list(self._directory))
        self._snapshots = list(names)
        self._remove(offset for offset in names if not first <= offset <= end_offset)
        bases = {segment.base_offset for segment in segments}
        strays = [offset for offset in self._snapshots if offset not in bases]
        newest = strays[-1:] if strays and strays[-1] > last else []
        self._remove(offset for offset in strays if offset not in newest)
        self._sync_removals()
        stale = [segment for segment in segments if segment.txn_index.is_stale]
        damaged = None
        if names or stale or not is_clean:
            start_by = stale[0].base_offset if stale else end_offset
            damaged = self._read(segments, end_offset, start_by, verify=True)
        self._complete_indexes(stale, segments[-1])
        return damaged

    def _complete_indexes(self, stale: Sequence[Segment], active: Segment) -> None:
        """Make the rebuilt indexes durable: below the recovery point no start rebuilds them."""
        for segment in stale:
            segment.txn_index.is_stale = False
            segment.txn_index.save()
            segment.txn_index.sync()
            segment.end_rebuild()
            if segment is not active:
                segment.txn_index.forget()

    def _read(
        self, segments: Sequence[Segment], end_offset: int, start_by: int, verify: bool
    ) -> DamagedBatch | None:
        """Set the entries to what snapshots and log say. A snapshot above `start_by` is not used:
        from there on, transaction indexes are rebuilt too.

        With `verify`, the batches are read whole, with their checksums: a wrong header could leave
        a transaction open forever. The first damaged one is returned. From there on nothing of its
        segment is used.
        """
        start = segments[0].base_offset
        self.entries, self._changed_up_to, self._silent = {}, 0, {}
        for offset in reversed([one for one in self._snapshots if one <= start_by]):
            entries = self._read_snapshot(offset)
            if entries is not None:
                self.entries, start = entries, offset
                self._changed_up_to = offset if entries else 0
                break
        self.transactions = TransactionTable.of(self.entries.values())
        damaged: DamagedBatch | None = None
        for segment in segments:
            if segment.next_offset <= start or segment.base_offset >= end_offset:
                continue
            expected = segment.base_offset
            try:
                for end in self._read_segment(segment, start, verify):
                    expected = end
            except CorruptBatch as error:
                logger.error("%s: producers of %s: %s", self._name, segment.path, error)
                damaged = damaged or DamagedBatch(expected, str(error))
        return damaged

    def _read_segment(self, segment: Segment, start: int, verify: bool) -> Iterator[int]:
        """Yield where each batch ends."""
        base, end = segment.base_offset, segment.next_offset
        whole = verify and not segment.is_verified
        found = (
            verified_batches(segment.log, base, end)
            if whole
            else headers(segment.log, 0, segment.size)
        )
        for position, header in found:
            if header.base_offset >= start and header.producer_id >= 0:
                self._note_stored(segment, position, header)
            yield header.next_offset

    def _note_stored(self, segment: Segment, position: int, header: BatchHeader) -> None:
        marker = None
        if header.is_control and header.record_count:
            marker = marker_in(segment.log.read(position, header.size))
        aborted = self.note(header, marker)
        if aborted is not None and segment.txn_index.is_stale:
            segment.txn_index.add(aborted)

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

    def end_truncation(self, segments: Sequence[Segment], end_offset: int) -> DamagedBatch | None:
        """Forget the batches that were removed. Returns the first damaged one that was read again,
        by its header: checksums are not verified."""
        if self._changed_up_to <= end_offset:
            return None
        return self._read(segments, end_offset, end_offset, verify=False)

    def clear(self) -> None:
        """Forget everything: the log begins at another offset, and has no snapshots any more."""
        self.entries, self._changed_up_to, self._silent = {}, 0, {}
        self.transactions = TransactionTable()

    def remove_snapshots(self, offsets: Collection[int]) -> None:
        """Remove the snapshots at these offsets, where no segment begins any more."""
        self._remove(offset for offset in self.snapshot_offsets if offset in offsets)

    def marker_goes(self, offset: int) -> None:
        """Compaction is about to remove a marker, and has removed its transaction: a snapshot from
        before the marker may say that it is open."""
        self._pending = [one for one in self._pending if one.offset > offset]
        for snapshot in self._writing:
            snapshot.is_abandoned |= snapshot.offset <= offset
        self._remove(one for one in self.snapshot_offsets if one <= offset)

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

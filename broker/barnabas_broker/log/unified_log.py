"""One replica's log: its segments as one sequence of offsets, its epochs, its high watermark.

Called on the event loop: appends and reads run inline, without an await between a check and the
action it allows. Slow work is left to the host (see `LogHost`).

Log start offset <= high watermark <= log end offset. The records below the recovery point survive a
power loss.

If a write fails, the file is truncated to its previous size, and this call and all later ones raise
KAFKA_STORAGE_ERROR: a disk that failed once is not trusted again while the broker runs. A lack of
file descriptors is not a failure of the disk: this call raises the same (retriable) error, and the
log is unchanged.
"""

import errno
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from barnabas_common.errors import OffsetOutOfRangeError
from barnabas_common.record.batch import Buffer, CorruptBatch
from barnabas_common.record.transactional import marker_in

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.appended import Appended
from barnabas_broker.log.checkpoint.partition_metadata import read_topic_id, write_topic_id
from barnabas_broker.log.epochs.leader_epoch_cache import EpochEnd
from barnabas_broker.log.epochs.leader_epoch_file import LeaderEpochFile
from barnabas_broker.log.flush_plan import FlushPlan, segments_to_flush
from barnabas_broker.log.index.time_index import NO_TIMESTAMP
from barnabas_broker.log.local_log import LocalLog
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.producers.producer_state_manager import ProducerStateManager
from barnabas_broker.log.producers.verification import VerificationGuard
from barnabas_broker.log.readable_log import ReadableLog
from barnabas_broker.log.record_validation import Unpacking
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint, LogFolder
from barnabas_broker.log.recovery.log_loader import load
from barnabas_broker.log.retention import Deletion, segments_to_delete
from barnabas_broker.log.segment.batch_scan import DamagedBatch
from barnabas_broker.log.segment.replacement import Replacement
from barnabas_broker.log.segment.segment import PlacedBatch, Segment
from barnabas_broker.log.stamping import stamped
from barnabas_broker.log.storage_guard import StorageGuard
from barnabas_broker.log.validation import (
    CheckedBatch,
    by_segment,
    check_produced,
    check_replicated,
    verified,
)

logger = logging.getLogger(__name__)


class UnifiedLog(ReadableLog):
    """The constructor opens the log; it runs off the event loop if recovery may take long.

    `damage`: what was found damaged or missing when the log was opened or truncated, until the
    replica's next role decides what follows.

    Raises OSError, or UnknownTopicIdError if `partition.metadata` is malformed.
    """

    def __init__(self, context: LogContext, folder: LogFolder, checkpoint: LogCheckpoint) -> None:
        self._context = context
        self._disk = folder.disk
        self.topic_partition = folder.topic_partition
        self.directory = folder.path
        self.config: LogConfig = folder.config
        self.topic_id = read_topic_id(folder.disk, folder.path)
        loaded = load(folder, checkpoint)
        self._local = LocalLog(context, folder, loaded.segments)
        self.leader_epochs = loaded.epochs
        self.epoch_file = LeaderEpochFile(folder.disk, folder.path, loaded.epochs)
        self.log_start_offset = loaded.log_start_offset
        self.recovery_point = loaded.recovery_point
        self.cut_at_start = loaded.cut
        self.damaged_epochs = loaded.damaged_epochs
        self.high_watermark = self._clamp(checkpoint.high_watermark)
        self.last_flush_ms = context.clock.wall_ms()
        self.truncations = 0
        # A truncation by a killed process may be in the page cache only.
        self._durable_truncations = 0 if checkpoint.is_clean else -1
        self._durable_names = 0
        self._guard = StorageGuard(self, context.host)
        self.producers = ProducerStateManager(folder.disk, folder.path, folder.topic_partition)
        damaged = self.producers.load(loaded.segments, self.log_end_offset, checkpoint.is_clean)
        self.misses_batches = loaded.missing is not None
        self.damage = loaded.missing or self._if_readable(damaged)
        self.producers.transactions.high_watermark_moved(self.high_watermark)

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._local.log_end_offset

    @property
    def size_bytes(self) -> int:
        return self._local.segments.size

    @property
    def segment_offsets(self) -> list[int]:
        """The base offset of each segment; the log start offset may lie above the first."""
        return [segment.base_offset for segment in self._local.segments]

    @property
    def active_segment_offset(self) -> int:
        """The base offset of the segment that is appended to."""
        return self._local.segments.active.base_offset

    def set_topic_id(self, topic_id: str) -> None:
        """Write `partition.metadata`. Raises OSError."""
        write_topic_id(self._disk, self.directory, topic_id)
        self.topic_id = topic_id

    # ---- appending

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        unpacking: Unpacking | None = None,
    ) -> Appended:
        """Append a producer's batches atomically, under the next offsets and `leader_epoch`.

        A retry is not appended, but answered as before. `guard`: see `ProducerStateManager.check`.
        Raises as that, `verified`, `check_retry`, `check_produced`, and KafkaStorageError.
        """
        self._guard.check_usable()
        sent = verified(records, origin)
        known = self.producers.check(sent, origin, guard)
        if known.batches:
            known = self._checked_retry(sent, known)
        if known.batches == len(sent):
            self.flush_if_due()  # the flush after the append may have failed
            return Appended(known.first_offset, known.last_offset, known.timestamp)
        batches = check_produced(sent[known.batches :], self.config, now_ms, unpacking)
        first_offset = self.log_end_offset
        buffers, placed, headers, last_offset = stamped(batches, first_offset, leader_epoch)
        with self._guard.appending():
            rolled = self._local.append(buffers, placed, first_offset, self.config, now_ms)
        self.assign_epoch(leader_epoch, first_offset)
        self._note_producers(map(CheckedBatch, headers, (data for _, data in batches)), rolled)
        self._after_append(rolled)
        append_time = self.config.message_timestamp_type == "LogAppendTime"
        first_offset = known.first_of_all(first_offset)
        return Appended(first_offset, last_offset, now_ms if append_time else NO_TIMESTAMP)

    def append_as_follower(self, records: Buffer, leader_epoch: int | None = None) -> None:
        """Append the batches of the leader of this epoch with their offsets, epochs and timestamps.

        If the batches do not fit into one segment, the log rolls between them.

        Raises:
            CorruptMessageError: bad checksums, offsets or epochs; nothing was appended.
            UnexpectedAppendOffset: the first offset is below the end of this log.
            KafkaStorageError: the disk failed; the first batches may have been appended.
        """
        self._guard.check_usable()
        batches = check_replicated(records, self.log_end_offset, leader_epoch)
        now_ms = self._context.clock.wall_ms()
        room = self.config.segment_bytes - self._local.segments.active.size
        any_rolled = False
        try:
            for group in by_segment(batches, room, self.config.segment_bytes):
                placed = [PlacedBatch(h.last_offset, h.size, h.max_timestamp) for h, _ in group]
                data: list[Buffer] = [batch.data for batch in group]
                first_offset = group[0].header.base_offset
                with self._guard.appending():
                    rolled = self._local.append(data, placed, first_offset, self.config, now_ms)
                any_rolled |= rolled
                for header, _ in group:
                    self.assign_epoch(header.partition_leader_epoch, header.base_offset)
                self._note_producers(group, rolled)
        finally:  # the next fetch tells the leader of the first batches too
            if not self.is_failed:
                self._after_append(any_rolled)

    def _note_producers(self, batches: Iterable[CheckedBatch], rolled: bool) -> None:
        """Take over what was appended; the snapshot of a new segment has what came before it."""
        if rolled:
            self.producers.take_snapshot(self.active_segment_offset)
        for header, data in batches:
            aborted = self.producers.note(header, marker_in(data) if header.is_control else None)
            if aborted is not None:
                self._local.segments.active.txn_index.add(aborted)

    def _after_append(self, rolled: bool) -> None:
        """Flush after the epochs are assigned: the recovery point must not pass unsaved epochs."""
        if rolled:
            self._context.host.rolled(self)
        self.flush_if_due()

    @property
    def is_flush_due(self) -> bool:
        """Whether `flush.messages` unflushed records require a flush."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    def flush_if_due(self) -> None:
        """Flush if `flush.messages` requires it. Raises KafkaStorageError."""
        if self.is_flush_due:
            with self._guard.io("flush"):
                self.flush()

    def roll(self) -> None:
        """Start a new segment at the log end offset, unless the active one is empty."""
        self._guard.check_usable()
        if self._local.segments.active.size > 0:
            with self._guard.io("roll"):
                self._local.roll(self.log_end_offset, self.config, "asked to")
            self.producers.take_snapshot(self.log_end_offset)
            self._context.host.rolled(self)

    # ---- epochs

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Where `epoch` ended in this log; (-1, -1) if that is unknown (KIP-279)."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def latest_epoch(self) -> int | None:
        """The newest leader epoch of this log; None if it has none."""
        return self.leader_epochs.latest_epoch()

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` starts at `start_offset`; it may have no records yet."""
        if epoch >= 0 and self.leader_epochs.assign(epoch, start_offset):
            self._epochs_changed()

    def _epochs_changed(self) -> None:
        with self._guard.io("write the epochs"):
            self._context.host.epochs_changed(self)

    # ---- watermarks

    def update_high_watermark(self, offset: int) -> None:
        """Set the high watermark of a follower, limited to the offsets of this log."""
        self.high_watermark = self._clamp(offset)
        self.producers.transactions.high_watermark_moved(self.high_watermark)

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Raise a leader's high watermark; True if it moved. ValueError above the log end."""
        if offset > self.log_end_offset:
            raise ValueError(f"{self}: high watermark {offset} above the log end offset")
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self.producers.transactions.first_unstable_offset is not None:
            self.producers.transactions.high_watermark_moved(offset)
        return True

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start; True if it moved. OffsetOutOfRangeError above the high watermark."""
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition}: log start offset {offset} above the high watermark"
                f" {self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        if self.leader_epochs.truncate_from_start(offset):
            self._epochs_changed()
        return True

    def _clamp(self, offset: int) -> int:
        return min(max(offset, self.log_start_offset), self.log_end_offset)

    def _if_readable(self, damaged: DamagedBatch | None) -> DamagedBatch | None:
        """None if its whole segment is below the log start. Otherwise batches above the log start
        may not have been read."""
        if damaged is None:
            return None
        start, segment = self.log_start_offset, self._local.segments.holding(damaged.offset)
        if segment.next_offset <= start:
            return None
        return damaged._replace(offset=max(damaged.offset, start))

    # ---- truncation

    def truncate_to(self, offset: int) -> None:
        """Remove all records at `offset` and above.

        A batch with `offset` in its middle goes as a whole; epochs without records go in any case.
        """
        self._guard.check_usable()
        if offset < 0:
            raise ValueError(f"{self.topic_partition}: cannot truncate to {offset}")
        if offset >= self.log_end_offset:
            if self.leader_epochs.truncate_from_end(self.log_end_offset):
                self._epochs_changed()
            return
        if offset < self._local.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        with self._guard.io("read"):
            border = self._local.border_at(offset)
        epoch = self.leader_epochs.epoch_for_offset(border.end - 1)
        with self._truncating(border.unchanged_below):
            self._context.host.discard(self, self._local.truncate_to(border, self.config, epoch))
            self.log_start_offset = min(self.log_start_offset, self.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records and start an empty log at `offset`."""
        self._guard.check_usable()
        with self._truncating(offset):
            self.producers.begin_truncation(-1)  # forgotten only once the records are gone
            removed = self._local.restart_at(offset, self.config)
            self.producers.clear()
            self._context.host.discard(self, removed)
            self.log_start_offset = offset
            self.leader_epochs.clear()

    @contextmanager
    def _truncating(self, offset: int) -> Iterator[None]:
        """Lower the checkpoints before a truncation; adjust to the new log end after it."""
        self.truncations += 1
        self._guard.has_appended = False
        with self._guard.io("truncate"):
            self._context.host.before_truncation(self, offset)
            self.producers.begin_truncation(offset)
            try:
                yield
                damaged = self.producers.end_truncation(self.segments(), self.log_end_offset)
            except CorruptBatch as error:  # truncated in part, so not usable
                self.fail(OSError(errno.EIO, str(error)))
                raise
        self.damage = self._if_readable(damaged)
        self.recovery_point = min(self.recovery_point, offset)
        self.update_high_watermark(self.high_watermark)
        self.leader_epochs.truncate_from_end(self.log_end_offset)
        self._epochs_changed()

    # ---- retention

    def delete_old_segments(self, now_ms: int) -> int:
        """Delete the segments that retention does not keep; return their number."""
        self._guard.check_usable()
        with self._guard.io("look at the segments"):
            facts = list(self._local.facts())
        start, end = self.log_start_offset, self.high_watermark
        deletions = segments_to_delete(facts, start, end, self.config, now_ms)
        for deletion in deletions:
            self._delete_first(deletion)
        return sum(deletion.count for deletion in deletions)

    def _delete_first(self, deletion: Deletion) -> None:
        if deletion.count == len(self._local.segments):
            self.roll()
        removed = self._local.remove_first(deletion.count)
        start = max(self.log_start_offset, self._local.segments.first.base_offset)
        self.maybe_increment_log_start_offset(start)
        bases = [segment.base_offset for segment in removed]
        logger.info("%s: deleting segments %s, %s", self, bases, deletion.reason)
        with self._guard.io("delete segments"):
            self.producers.remove_snapshots_below(self._local.segments.first.base_offset)
            self._context.host.discard(self, removed)

    # ---- compaction

    def segments(self) -> list[Segment]:
        """All segments; the last one is active."""
        return list(self._local.segments)

    def begin_replacement(self, old: Sequence[Segment], cleaned: Segment) -> Replacement:
        """Announce a compacted segment; see `Replacement` for the steps that follow."""
        self._guard.check_usable()
        return self._local.begin_replacement(old, cleaned)

    def use(self, replacement: Replacement) -> bool:
        """Read from the compacted segment; False if an old one has gone in the meantime."""
        self._guard.check_usable()
        return self._local.use(replacement)

    def end_replacement(self, replacement: Replacement) -> None:
        """Complete it if the compacted segment is in use; remove that segment if not."""
        with self._guard.io("replace segments"):
            self._local.end_replacement(replacement)
            if replacement.is_in_use:
                self.producers.remove_snapshots(replacement.merged_bases)
        if replacement.is_in_use:
            self._context.host.discard(self, replacement.old)

    # ---- flushing

    def flush(self, up_to: int | None = None) -> None:
        """fsync the records below `up_to`, or all, before returning. Raises OSError."""
        plan = self.plan_flush(up_to)
        self.epoch_file.write()
        plan.run()
        self.complete_flush(plan)

    def plan_flush(self, up_to: int | None = None) -> FlushPlan:
        """The plan of a flush: `run` it on any thread, then `complete_flush` on the event loop."""
        end = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        segments = self._local.segments
        # A truncation needs an fsync, as a write does.
        truncated = self.truncations != self._durable_truncations
        names_version = self._local.names_version
        return FlushPlan(
            end_offset=end,
            truncations=self.truncations,
            epoch_version=self.leader_epochs.version,
            names_version=names_version,
            segments=segments_to_flush(segments, self.recovery_point, end, truncated),
            directory=None if names_version == self._durable_names else self.directory,
            disk=self._disk,
        )

    def complete_flush(self, plan: FlushPlan) -> None:
        """Raise the recovery point, unless the log was truncated, the epochs are not durable, or
        deleted segments could be found below it."""
        self.last_flush_ms = self._context.clock.wall_ms()
        self._durable_names = max(self._durable_names, plan.names_version)
        self._durable_truncations = max(self._durable_truncations, plan.truncations)
        if (
            plan.truncations == self.truncations
            and self.epoch_file.durable_version >= plan.epoch_version
            and not self._context.host.is_discarding(self, plan.end_offset)
        ):
            self.recovery_point = max(self.recovery_point, plan.end_offset)

    # ---- the end

    @property
    def is_failed(self) -> bool:
        return self._guard.failure is not None

    def close(self) -> None:
        """Save indexes and producers durably and close the files, after `flush`. Raises OSError."""
        if not self.is_failed:
            self.producers.close(self.log_end_offset)
        self._local.close(save_indexes=not self.is_failed)
        self.fail(OSError(errno.EBADF, "the log is closed"))

    def fail(self, error: OSError) -> None:
        """Refuse all further use."""
        self._guard.fail(error)

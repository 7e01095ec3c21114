"""The files of one log: its segments as one sequence of offsets.

The lower half of `UnifiedLog`, as in Kafka: bytes, positions and the log end offset. What is
committed and what epochs mean is decided above. I/O errors are OSError; malformed batches are
CorruptBatch.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas_common.record.batch import Buffer
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.disk import is_out_of_descriptors
from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED
from barnabas_broker.log.index.time_index import NO_TIMESTAMP
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.recovery.log_checkpoint import LogFolder
from barnabas_broker.log.retention import SegmentFacts
from barnabas_broker.log.segment.empty_batch import empty_batch_at
from barnabas_broker.log.segment.lookup import start_of
from barnabas_broker.log.segment.position_cache import PositionCache
from barnabas_broker.log.segment.replacement import Replacement
from barnabas_broker.log.segment.roll import MAX_RELATIVE_OFFSET, Incoming, reason_to_roll
from barnabas_broker.log.segment.segment import PlacedBatch, Segment, new_segment
from barnabas_broker.log.segment.segment_list import SegmentList

logger = logging.getLogger(__name__)


class Border(NamedTuple):
    """Where a truncation ends a log. `is_in_gap`: the last batch that is left ends earlier."""

    end: int
    is_in_gap: bool

    @property
    def unchanged_below(self) -> int:
        return self.end - 1 if self.is_in_gap else self.end


class LocalLog:
    """Called by `UnifiedLog` only. `names_version` counts the file names that were created."""

    def __init__(self, context: LogContext, folder: LogFolder, segments: list[Segment]) -> None:
        self._context = context
        self._disk = folder.disk
        self._name: TopicPartition = folder.topic_partition
        self.directory = folder.path
        self.segments = SegmentList(segments)
        self.log_end_offset = self.segments.active.next_offset
        self.names_version = 1
        self._positions = PositionCache()
        self._replacement: Replacement | None = None
        self._has_swapped = False
        self._start_active(self.segments.active, folder.config)

    # ---- writing

    def append(
        self,
        buffers: Sequence[Buffer],
        placed: Sequence[PlacedBatch],
        first_offset: int,
        config: LogConfig,
        now_ms: int,
    ) -> bool:
        """Append batches, in a new segment if a roll is due; return whether it was."""
        incoming = Incoming(
            sum(batch.size for batch in placed),
            placed[-1].last_offset,
            max(batch.max_timestamp for batch in placed),
        )
        reason = reason_to_roll(self.segments.active.roll_state(), incoming, config, now_ms)
        if reason is not None:
            self.roll(self._next_base(first_offset, incoming.last_offset), config, reason)
        self.segments.active.append(buffers, placed, config.index_interval_bytes)
        self.log_end_offset = incoming.last_offset + 1
        return reason is not None

    def _next_base(self, first_offset: int, last_offset: int) -> int:
        """The base of a new segment: where the log ends, also if the append starts later because
        its leader's log is compacted. A gap between segments would look like lost records."""
        too_far = last_offset - self.log_end_offset > MAX_RELATIVE_OFFSET
        return first_offset if too_far else self.log_end_offset

    def roll(self, base_offset: int, config: LogConfig, reason: str) -> None:
        """Seal the active segment and start one at `base_offset`.

        All or nothing: after an OSError the active segment can still be appended to.
        """
        sealed = self.segments.active
        sealed.save_indexes()
        segment = self._new_segment(base_offset, config)
        sealed.forget_indexes()
        self.segments.add(segment)
        logger.info("%s: new segment at %d: %s", self._name, base_offset, reason)

    def _new_segment(self, base_offset: int, config: LogConfig) -> Segment:
        segment = new_segment(self._disk, self.directory, base_offset, config)
        self._start_active(segment, config)
        self.names_version += 1
        return segment

    def _start_active(self, segment: Segment, config: LogConfig) -> None:
        segment.created_ms = self._context.clock.wall_ms()
        most = min(config.segment_jitter_ms, config.segment_ms)
        segment.jitter_ms = self._context.randomness.randrange(most) if most > 0 else 0

    # ---- reading

    def read(self, offset: int, max_bytes: int, end_offset: int, min_one: bool) -> bytes:
        """Whole batches of one segment, from the one that holds `offset`, below `end_offset`."""
        place = self._positions.get(offset)
        segment, position = place if place is not None else self._locate(offset)
        while position >= segment.size:  # compaction may have emptied any number of segments
            following = self.segments.after(segment)
            if following is None:
                return b""
            segment, position = following, 0
        piece = segment.read(position, offset, max_bytes, end_offset, min_one)
        if piece.data:
            self._positions.remember(piece.next_offset, segment, piece.next_position)
        return piece.data

    def next_batch(self, offset: int) -> int:
        """Where the batch begins that holds `offset`, or the next one; the log's end without one.

        Raises CorruptBatch.
        """
        for segment in self.segments.from_offset(offset):
            found = segment.locate(offset)
            if found is not None:
                return found[1].base_offset
        return self.log_end_offset

    def _locate(self, offset: int) -> tuple[Segment, int]:
        segment = self.segments.holding(offset)
        found = segment.locate(offset)
        return segment, found[0] if found is not None else segment.size

    # ---- truncation and deletion

    def border_at(self, offset: int) -> Border:
        """Where to truncate for `offset`, which is below the log's end. Batches stay whole."""
        found = self.segments.holding(offset).locate(offset)
        end = offset if found is None else start_of(found[1], offset)
        return Border(end, is_in_gap=self.data_end_below(end) < end)

    def data_end_below(self, offset: int) -> int:
        """Where the last batch ends that is entirely below `offset`, or the start of the log."""
        for segment in reversed([one for one in self.segments if one.base_offset < offset]):
            end = segment.end_below(offset)
            if end is not None:
                return end
        return self.segments.first.base_offset

    def truncate_to(
        self, border: Border, config: LogConfig, last_epoch: int | None
    ) -> list[Segment]:
        """Remove all batches from the border on; return the removed segments.

        Later segments are removed first, the newest first, and durably before the one in front is
        truncated.

        The log ends at the border also in a gap: offsets below it may be committed, and must not
        be given out again. A batch without records, of the epoch there, then marks the end.
        Otherwise a follower that copies this log could not reach its end, nor could a restart.
        """
        self._settle_replacement(durably=True)
        self._positions.clear()
        active = self.segments.holding(border.unchanged_below)
        active.unseal_indexes()  # needs a descriptor, so it precedes what cannot be undone
        removed = self.segments.above(active.base_offset)
        if removed:
            self._mark_deleted(removed)
            self.segments.remove_above(active.base_offset)
        active.truncate_to(border.end)
        if border.is_in_gap:
            last = border.end - 1
            batch = empty_batch_at(last, UNDEFINED if last_epoch is None else last_epoch)
            placed = PlacedBatch(last, len(batch), NO_TIMESTAMP)
            active.append([batch], [placed], config.index_interval_bytes)
            active.log.flush()
        self._start_active(active, config)
        self.log_end_offset = active.next_offset
        return removed

    def restart_at(self, offset: int, config: LogConfig) -> list[Segment]:
        """Remove all batches and start at `offset`; return the removed segments."""
        self._settle_replacement(durably=True)
        self._positions.clear()
        self._mark_deleted(list(self.segments)[::-1])
        try:
            segment = self._new_segment(offset, config)
        except OSError as error:
            self._unmark_deleted(list(self.segments), error)
            raise
        removed = self.segments.replace_all(segment)
        self.log_end_offset = offset
        return removed

    def remove_first(self, count: int) -> list[Segment]:
        """Remove the oldest segments from the list; their files keep their names."""
        self._settle_replacement(durably=False)
        self._positions.clear()
        return self.segments.remove_first(count)

    # ---- compaction

    def begin_replacement(self, old: Sequence[Segment], cleaned: Segment) -> Replacement:
        """Announce a compacted segment, so that a truncation settles it."""
        self._replacement = Replacement(self._disk, self.directory, old, cleaned)
        return self._replacement

    def use(self, replacement: Replacement) -> bool:
        """Read from the compacted segment; False if an old one has gone in the meantime."""
        if replacement.is_abandoned or not set(replacement.old) <= set(self.segments):
            return False
        self.segments.replace(replacement.old, replacement.cleaned)
        self._positions.clear()
        replacement.is_in_use = True
        return True

    def end_replacement(self, replacement: Replacement) -> None:
        """Complete it if the compacted segment is in use; remove that segment if not."""
        if replacement.is_in_use and not replacement.is_complete:
            replacement.complete()
            self.names_version += 1
            self._has_swapped = True
        elif not replacement.is_in_use:
            replacement.abandon()
        if self._replacement is replacement:
            self._replacement = None

    def _settle_replacement(self, durably: bool) -> None:
        """Before segments change in any other way. After a power loss, `.swap` names that return
        would put old segments beside a truncated one."""
        if self._replacement is not None:
            self.end_replacement(self._replacement)
        if durably and self._has_swapped:
            self._disk.sync_directory(self.directory)
            self._has_swapped = False

    # ---- the names of deleted segments

    def _mark_deleted(self, segments: list[Segment]) -> None:
        for segment in segments:
            segment.mark_deleted()
        try:
            self._disk.sync_directory(self.directory)
        except OSError as error:
            self._unmark_deleted(segments, error)
            raise

    def _unmark_deleted(self, segments: list[Segment], error: OSError) -> None:
        """Undo `_mark_deleted` if no descriptor was left: nothing was truncated then.

        After any other error the log is not used again. The next flush makes the names durable.
        """
        if is_out_of_descriptors(error):
            for segment in segments:
                segment.unmark_deleted()
            self.names_version += 1

    def facts(self) -> Iterable[SegmentFacts]:
        """The input of `segments_to_delete`."""
        for segment in self.segments:
            yield SegmentFacts(
                segment.base_offset,
                self.segments.end_of(segment, self.log_end_offset),
                segment.size,
                segment.largest_timestamp(),
            )

    def close(self, save_indexes: bool) -> None:
        if save_indexes:
            self.segments.active.save_indexes()
            self.segments.active.sync_indexes()
        for segment in self.segments:
            segment.close()

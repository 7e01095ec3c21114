"""The files of one log: its segments as one sequence of offsets.

The lower half of `UnifiedLog`, as in Kafka: bytes, positions and the log end offset. What is
committed and what epochs mean is decided above. I/O errors are OSError; malformed batches are
CorruptBatch.
"""

import logging
from collections.abc import Iterable, Sequence

from barnabas_common.record.batch import Buffer
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.disk import is_out_of_descriptors
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.recovery.log_loader import LogFolder
from barnabas_broker.log.retention import SegmentFacts
from barnabas_broker.log.segment.position_cache import PositionCache
from barnabas_broker.log.segment.roll import MAX_RELATIVE_OFFSET, Incoming, reason_to_roll
from barnabas_broker.log.segment.segment import (
    CLEANED_SUFFIX,
    SWAP_SUFFIX,
    PlacedBatch,
    Segment,
    new_segment,
)
from barnabas_broker.log.segment.segment_list import SegmentList

logger = logging.getLogger(__name__)


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
        piece = segment.read(position, max_bytes, end_offset, min_one)
        if piece.data:
            self._positions.remember(piece.next_offset, segment, piece.next_position)
        return piece.data

    def _locate(self, offset: int) -> tuple[Segment, int]:
        segment = self.segments.holding(offset)
        found = segment.locate(offset)
        return segment, found[0] if found is not None else segment.size

    # ---- truncation and deletion

    def border_at(self, offset: int) -> int:
        """Where to truncate for `offset`: where the last batch ends that is entirely below it.

        Batches stay whole. And a log never ends in a gap of compaction: a follower that copies it
        could not reach its end.
        """
        for segment in reversed([one for one in self.segments if one.base_offset < offset]):
            end = segment.end_below(offset)
            if end is not None:
                return end
        return self.segments.first.base_offset

    def truncate_to(self, offset: int, config: LogConfig) -> list[Segment]:
        """Remove all batches from `offset`, a border of batches, on; return the removed segments.

        Later segments are removed first, the newest first, and durably before the one in front is
        truncated.
        """
        self._positions.clear()
        active = self.segments.holding(offset)
        active.unseal_indexes()  # needs a descriptor, so it precedes what cannot be undone
        removed = self.segments.above(offset)
        if removed:
            self._mark_deleted(removed)
            self.segments.remove_above(offset)
        active.truncate_to(offset)
        self._start_active(active, config)
        self.log_end_offset = active.next_offset
        return removed

    def restart_at(self, offset: int, config: LogConfig) -> list[Segment]:
        """Remove all batches and start at `offset`; return the removed segments."""
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
        self._positions.clear()
        return self.segments.remove_first(count)

    def replace(self, old: Sequence[Segment], cleaned: Segment) -> None:
        """Put a compacted segment, which is durable, in the place of those it was made from.

        The `.swap` names are durable before an old file loses its own, so that a crash leaves
        either all of the old segments or the whole new one (`compaction_files.py`).
        """
        cleaned.change_suffix(CLEANED_SUFFIX, SWAP_SUFFIX)
        try:
            self._disk.sync_directory(self.directory)
        except OSError as error:
            if is_out_of_descriptors(error):
                cleaned.change_suffix(SWAP_SUFFIX, CLEANED_SUFFIX)
            raise
        for segment in old:
            segment.mark_deleted()
        cleaned.change_suffix(SWAP_SUFFIX, "")
        self.segments.replace(old, cleaned)
        self._positions.clear()
        self.names_version += 1

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

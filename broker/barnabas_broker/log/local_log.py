"""The files of one log: its segments as one sequence of offsets.

`Log` stands on it, as Kafka's UnifiedLog on its LocalLog: here are bytes, positions and the log end
offset; who may write, what is committed and what epochs mean is decided above. I/O errors are
OSError; bytes that are no batches are CorruptBatch.
"""

import logging
from collections.abc import Iterable, Sequence

from barnabas.record.batch import Buffer
from barnabas.topic_partition import TopicPartition

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.log_loader import LogFolder
from barnabas_broker.log.position_cache import PositionCache
from barnabas_broker.log.retention import SegmentFacts
from barnabas_broker.log.roll import Incoming, reason_to_roll
from barnabas_broker.log.segment import PlacedBatch, Segment
from barnabas_broker.log.segment_list import SegmentList
from barnabas_broker.log.timestamp_lookup import (
    TimestampedOffset,
    first_at_or_after,
    first_of_largest,
)

logger = logging.getLogger(__name__)


class LocalLog:
    """Called by `Log` alone. `names_version` grows with every file name that is made."""

    def __init__(self, context: LogContext, folder: LogFolder, segments: list[Segment]) -> None:
        self._context = context
        self._disk = folder.disk
        self._name: TopicPartition = folder.topic_partition
        self.directory = folder.path
        self.segments = SegmentList(segments)
        self.log_end_offset = self.segments.active.next_offset
        self.names_version = 1
        self._positions = PositionCache()
        self._begin_active(self.segments.active, folder.config)

    # ---- writing

    def append(
        self,
        buffers: Sequence[Buffer],
        placed: Sequence[PlacedBatch],
        first_offset: int,
        config: LogConfig,
        now_ms: int,
    ) -> bool:
        """Write batches at the end, in a new segment if it is time; whether it was."""
        incoming = Incoming(
            sum(batch.size for batch in placed),
            placed[-1].last_offset,
            max(batch.max_timestamp for batch in placed),
        )
        reason = reason_to_roll(self.segments.active.roll_state(), incoming, config, now_ms)
        if reason is not None:
            self.roll(max(first_offset, self.log_end_offset), config, reason)
        self.segments.active.append(buffers, placed, config.index_interval_bytes)
        self.log_end_offset = incoming.last_offset + 1
        return reason is not None

    def roll(self, base_offset: int, config: LogConfig, reason: str) -> None:
        """Seal the active segment and begin one at `base_offset`."""
        logger.info("%s: new segment at %d: %s", self._name, base_offset, reason)
        self.segments.active.seal()
        self.segments.add(self._new_segment(base_offset, config))

    def _new_segment(self, base_offset: int, config: LogConfig) -> Segment:
        segment = Segment(self._disk, self.directory, base_offset, config)
        segment.create_indexes()
        self._begin_active(segment, config)
        self.names_version += 1
        return segment

    def _begin_active(self, segment: Segment, config: LogConfig) -> None:
        segment.created_ms = self._context.clock.wall_ms()
        most = min(config.segment_jitter_ms, config.segment_ms)
        segment.jitter_ms = self._context.randomness.randrange(most) if most > 0 else 0

    # ---- reading

    def read(self, offset: int, max_bytes: int, end_offset: int, min_one: bool) -> bytes:
        """Whole batches of one segment, from the one that holds `offset`, below `end_offset`."""
        place = self._positions.get(offset)
        segment, position = place if place is not None else self._locate(offset)
        if position >= segment.size:
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

    def first_at_or_after(
        self, timestamp_ms: int, log_start_offset: int
    ) -> TimestampedOffset | None:
        """The first record that is not older than `timestamp_ms`."""
        return first_at_or_after(self.segments, timestamp_ms, log_start_offset)

    def first_of_largest_timestamp(self) -> TimestampedOffset | None:
        """The first record with the largest timestamp."""
        return first_of_largest(self.segments)

    # ---- cutting

    def border_at(self, offset: int) -> int:
        """Where a cut at `offset` falls: batches go whole, so at the start of the one it is in."""
        found = self.segments.holding(offset).locate(offset)
        return offset if found is None else min(offset, found[1].base_offset)

    def truncate_to(self, offset: int, config: LogConfig) -> list[Segment]:
        """Drop everything from `offset`, a border of batches, on; the segments that are out.

        Later segments go first, the newest first, and durably before the one in front is cut.
        """
        self._positions.clear()
        removed = self.segments.remove_above(offset)
        if removed:
            self._mark_deleted(removed)
        active = self.segments.active
        active.truncate_to(offset)
        self._begin_active(active, config)
        self.log_end_offset = active.next_offset
        return removed

    def restart_at(self, offset: int, config: LogConfig) -> list[Segment]:
        """Drop everything and begin anew at `offset`; the segments that are out."""
        self._positions.clear()
        self._mark_deleted(list(self.segments)[::-1])
        removed = self.segments.replace_all(self._new_segment(offset, config))
        self.log_end_offset = offset
        return removed

    def remove_first(self, count: int) -> list[Segment]:
        """Let go of the oldest segments; their files still have their names."""
        self._positions.clear()
        return self.segments.remove_first(count)

    def _mark_deleted(self, segments: list[Segment]) -> None:
        for segment in segments:
            segment.mark_deleted()
        self._disk.sync_directory(self.directory)

    def facts(self) -> Iterable[SegmentFacts]:
        """What retention decides by."""
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

"""The four offset checkpoints of a data directory, each with one line per log.

recovery-point-offset-checkpoint  up to where each log survives a power loss
log-start-offset-checkpoint       log starts above the first segment's base
replication-offset-checkpoint     high watermarks
cleaner-offset-checkpoint         up to where each compacted log is clean: its first dirty offset
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from barnabas_common.runtime import Offload
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.checkpoint.checkpoint_file import (
    CheckpointFile,
    decode_offsets,
    encode_offsets,
)
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEAN_OFFSETS = "cleaner-offset-checkpoint"

Offsets = dict[TopicPartition, int]


class StoredOffsets(NamedTuple):
    """What the files hold at a start."""

    recovery_points: Offsets
    log_starts: Offsets
    high_watermarks: Offsets
    clean_offsets: Offsets


class OffsetCheckpoints:
    """`damaged`: the files that could not be used, and what is wrong with them. `clean_offsets`:
    those of the compacted logs; changed by the cleaner, which then writes them. I/O errors are
    OSError."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self.damaged: dict[str, str] = {}
        self._recovery_points = CheckpointFile(disk, f"{directory}/{RECOVERY_POINTS}")
        self._log_starts = CheckpointFile(disk, f"{directory}/{LOG_STARTS}")
        self._high_watermarks = CheckpointFile(disk, f"{directory}/{HIGH_WATERMARKS}")
        self._clean_offsets = CheckpointFile(disk, f"{directory}/{CLEAN_OFFSETS}")
        self.clean_offsets: Offsets = {}
        # What the files hold, or are about to hold: the highest offsets a crash can bring back.
        self._stored_recovery_points: Offsets = {}
        # What they are sure to hold after a crash, once their writes have been flushed.
        self._durable_recovery_points: Offsets = {}
        self._durable_clean_offsets: Offsets = {}
        self._stored_log_starts: Offsets = {}
        self._durable_log_starts: Offsets = {}
        # What the file holds, and the ends of the logs that end below their line in it.
        self._stored_high_watermarks: Offsets = {}
        self._ends_below_stored: Offsets = {}

    def read(self) -> StoredOffsets:
        """Read the files, at a start. A damaged one counts as empty, which costs more recovery."""
        self._stored_recovery_points = self._read(self._recovery_points)
        self._stored_log_starts = self._read(self._log_starts)
        self._stored_high_watermarks = self._read(self._high_watermarks)
        self.clean_offsets = self._read(self._clean_offsets)
        self._durable_recovery_points = dict(self._stored_recovery_points)
        self._durable_clean_offsets = dict(self.clean_offsets)
        self._durable_log_starts = dict(self._stored_log_starts)
        return StoredOffsets(
            dict(self._stored_recovery_points),
            dict(self._stored_log_starts),
            dict(self._stored_high_watermarks),
            dict(self.clean_offsets),
        )

    def durable_recovery_point(self, topic_partition: TopicPartition) -> int:
        """The lowest recovery point that a crash can bring back."""
        return self._durable_recovery_points.get(topic_partition, 0)

    def durable_log_start(self, topic_partition: TopicPartition) -> int:
        """The lowest log start that a crash can bring back; the base of the first segment counts
        if it is higher."""
        return self._durable_log_starts.get(topic_partition, 0)

    def names_as_compacted(self, topic_partition: TopicPartition) -> bool:
        """Whether the next start knows that the log is compacted, also after a crash."""
        return topic_partition in self._durable_clean_offsets

    @property
    def has_damaged_clean_offsets(self) -> bool:
        """Whether it is unknown which logs are compacted."""
        return self._clean_offsets.path in self.damaged

    @property
    def has_damaged_log_starts(self) -> bool:
        """Whether it is unknown where the logs start, if not at their first segments."""
        return self._log_starts.path in self.damaged

    def clean_again_from_start(self, logs: Iterable[UnifiedLog]) -> None:
        """Lower the clean offsets of the compacted logs to their log starts, in the file too: below
        a log start that is no longer known, nothing was compacted.

        Not where the recovery point is lower than the clean offset: then only the clean offset
        shows which gaps compaction has left.
        """
        lowered = {
            log.topic_partition: log.log_start_offset
            for log in logs
            if log.log_start_offset
            < self.clean_offsets.get(log.topic_partition, 0)
            <= log.recovery_point
        }
        if lowered:
            self._replace_clean_offsets(self.clean_offsets | lowered)

    def leave_out_clean_offsets(self, foreign: Mapping[TopicPartition, str]) -> None:
        """Remove the clean offsets of these logs, for the given reasons, from the file too: a log
        that has grown until the next start would seem to be compacted up to there."""
        if foreign:
            kept = {name: o for name, o in self.clean_offsets.items() if name not in foreign}
            self._replace_clean_offsets(kept)
            reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(foreign.items()))
            self.damaged[self._clean_offsets.path] = reasons

    def _replace_clean_offsets(self, offsets: Offsets) -> None:
        self.clean_offsets = offsets
        self._clean_offsets.write(encode_offsets(offsets))
        self._durable_clean_offsets = dict(offsets)

    def _read(self, file: CheckpointFile) -> Offsets:
        try:
            return decode_offsets(file.read())
        except MalformedCheckpoint as error:
            self.damaged[file.path] = str(error)
            return {}

    def begin(self, topic_partition: TopicPartition) -> None:
        """Before a log is created: what the files say of a lost one must not count for it."""
        stored = (
            self._stored_recovery_points,
            self._stored_log_starts,
            self._stored_high_watermarks,
            self.clean_offsets,
        )
        if any(topic_partition in offsets for offsets in stored):
            self.lower(topic_partition, 0)

    def lower(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Lower what the files say of a log to `end_offset`, before the log is truncated there."""
        for file, stored in (
            (self._recovery_points, self._stored_recovery_points),
            (self._log_starts, self._stored_log_starts),
            (self._clean_offsets, self.clean_offsets),
        ):
            file.supersede()
            if stored.get(topic_partition, 0) > end_offset:
                file.write(encode_offsets(stored | {topic_partition: end_offset}))
                stored[topic_partition] = end_offset
        for durable in (self._durable_recovery_points, self._durable_log_starts):
            durable[topic_partition] = min(durable.get(topic_partition, 0), end_offset)
        self.log_ends_at(topic_partition, end_offset)

    def log_ends_at(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Lower the stored high watermark of a log that ends below it, or is about to.

        Otherwise the next start would miss records there. Not durably: after a power loss it does
        not rely on the high watermark alone.
        """
        self._high_watermarks.supersede()
        if self._stored_high_watermarks.get(topic_partition, 0) > end_offset:
            self._ends_below_stored[topic_partition] = end_offset
            lowered = self._stored_high_watermarks | self._ends_below_stored
            self._high_watermarks.write_unsynced(encode_offsets(lowered))

    def before_first_append(self, topic_partition: TopicPartition) -> None:
        """Make the lowered high watermark durable of a log that ended below it.

        Otherwise the next start would count what is appended as committed. Done here and not by
        `lower`, one write serves all logs that were truncated together.
        """
        if topic_partition in self._ends_below_stored:
            lowered = self._stored_high_watermarks | self._ends_below_stored
            self._high_watermarks.write(encode_offsets(lowered))
            self._stored_high_watermarks = lowered
            self._ends_below_stored.clear()

    async def write_offsets(
        self,
        logs: Callable[[], Iterable[UnifiedLog]],
        lost: Callable[[], Iterable[TopicPartition]],
        offload: Offload,
    ) -> None:
        """Write the recovery points and log starts, without blocking the event loop."""

        def recovery_points() -> bytes:
            self._stored_recovery_points = _recovery_points(logs())
            return encode_offsets(self._stored_recovery_points)

        def log_starts() -> bytes:
            self._stored_log_starts = self._storable_log_starts(logs(), lost())
            return encode_offsets(self._stored_log_starts)

        await self._recovery_points.write_in_background(recovery_points, offload)
        self._durable_recovery_points = self._stored_recovery_points
        await self._log_starts.write_in_background(log_starts, offload)
        self._durable_log_starts = self._stored_log_starts

    def _storable_log_starts(
        self, logs: Iterable[UnifiedLog], lost: Iterable[TopicPartition]
    ) -> Offsets:
        """The lines of lost logs stay: one that comes back would have its deleted records again."""
        stored = self._stored_log_starts
        return {name: stored[name] for name in lost if name in stored} | _raised_log_starts(logs)

    def storable_high_watermarks(self, logs: Iterable[UnifiedLog]) -> Offsets:
        """The high watermarks that may be written now."""
        return {log.topic_partition: self._storable_high_watermark(log) for log in logs}

    def _storable_high_watermark(self, log: UnifiedLog) -> int:
        """Recovery relies on this: the epoch file of a log has the epochs of all batches below its
        high watermark here. Until the newest epoch is durable there, the old line stays."""
        if log.epoch_file.is_durable:
            return log.high_watermark
        stored = self._stored_high_watermarks.get(log.topic_partition, 0)
        return min(log.high_watermark, self._ends_below_stored.get(log.topic_partition, stored))

    async def write_high_watermarks(self, offsets: Callable[[], Offsets], offload: Offload) -> None:
        """Write the high watermarks, without blocking the event loop."""
        written: Offsets = {}

        def high_watermarks() -> bytes:
            nonlocal written
            written = offsets()
            return encode_offsets(written)

        def replaced() -> None:
            self._stored_high_watermarks = written
            self._ends_below_stored = {
                name: end
                for name, end in self._ends_below_stored.items()
                if end < written.get(name, 0)  # a log that is being created is not in `offsets`
            }

        await self._high_watermarks.write_in_background(high_watermarks, offload, replaced)

    async def write_clean_offsets(self, offload: Offload) -> None:
        """Write the clean offsets, without blocking the event loop."""
        written: Offsets = {}

        def clean_offsets() -> bytes:
            nonlocal written
            written = dict(self.clean_offsets)
            return encode_offsets(written)

        await self._clean_offsets.write_in_background(clean_offsets, offload)
        self._durable_clean_offsets = written

    def write_all(
        self, logs: Iterable[UnifiedLog], high_watermarks: Mapping[TopicPartition, int]
    ) -> None:
        """Write what changes all the time, at a clean shutdown. `high_watermarks`: those of lost
        logs too."""
        self._recovery_points.write(encode_offsets(_recovery_points(logs)))
        lost = high_watermarks.keys() - {log.topic_partition for log in logs}
        self._log_starts.write(encode_offsets(self._storable_log_starts(logs, lost)))
        self._high_watermarks.write(encode_offsets(high_watermarks))


def _recovery_points(logs: Iterable[UnifiedLog]) -> Offsets:
    return {log.topic_partition: log.recovery_point for log in logs}


def _raised_log_starts(logs: Iterable[UnifiedLog]) -> Offsets:
    """Only the log starts that the file names do not show."""
    return {
        log.topic_partition: log.log_start_offset
        for log in logs
        if log.log_start_offset > log.segment_offsets[0]
    }

"""One replica's log: its segments as one sequence of offsets, its epochs, its high watermark.

Called by the replica, in the event loop's turn: appends and reads run inline, with no await between
a check and what it allows. What may block for long is left to the host (see `LogHost`). Knows files
and offsets; nothing of peers, networks or ZooKeeper.

Offsets, in order: log start offset <= high watermark <= log end offset. The recovery point is the
end of what is known to survive a power loss.

When a write fails the file is cut back to where it was, the caller gets KAFKA_STORAGE_ERROR, and so
does everybody from then on: a disk that failed once is not trusted again while the broker runs.
"""

import errno
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from barnabas.errors import CorruptMessageError, KafkaStorageError, OffsetOutOfRangeError
from barnabas.record.batch import STAMP_SIZE, Buffer, CorruptBatch, stamp

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.log.flush_plan import FlushPlan
from barnabas_broker.log.leader_epoch_cache import EpochEnd
from barnabas_broker.log.leader_epoch_file import LeaderEpochFile
from barnabas_broker.log.local_log import LocalLog
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.log_loader import LogCheckpoint, LogFolder, load
from barnabas_broker.log.partition_metadata import read_topic_id, write_topic_id
from barnabas_broker.log.retention import Deletion, segments_to_delete
from barnabas_broker.log.segment import PlacedBatch
from barnabas_broker.log.timestamp_lookup import TimestampedOffset
from barnabas_broker.log.validation import CheckedBatch, check_produced, check_replicated

logger = logging.getLogger(__name__)

NO_TIMESTAMP = -1


class Appended(NamedTuple):
    """What an append did. Timestamps in ms, -1 none; the first is set with LogAppendTime only.

    An append without a batch has `last_offset` one below `first_offset`.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    max_timestamp: int
    batches: int
    bytes: int


class Log:
    """Opened by constructing it, off the loop if there may be much to recover.

    Raises OSError, or UnusableLog where `partition.metadata` is malformed.
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
        self._truncations = 0
        # Who was killed may have cut the log in the page cache alone.
        self._durable_truncations = 0 if checkpoint.is_clean else -1
        self._durable_names = 0
        self._failure: OSError | None = None

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

    def append_as_leader(self, records: Buffer, leader_epoch: int, now_ms: int) -> Appended:
        """Append a producer's batches, all or none, under the next offsets and `leader_epoch`.

        Raises:
            KafkaError: what `check_produced` finds wrong, or KAFKA_STORAGE_ERROR.
        """
        self._check_usable()
        batches = check_produced(records, self.config, now_ms)
        first_offset = offset = self.log_end_offset
        buffers: list[Buffer] = []
        placed: list[PlacedBatch] = []
        for header, data in batches:
            buffers.append(stamp(offset, leader_epoch, header.batch_length))
            buffers.append(data[STAMP_SIZE:])
            offset += header.last_offset_delta + 1
            placed.append(PlacedBatch(offset - 1, header.size, header.max_timestamp))
        self._write(buffers, placed, first_offset, now_ms)
        self._note_epoch(leader_epoch, first_offset)
        self._flush_if_due()
        append_time = self.config.message_timestamp_type == "LogAppendTime"
        return _appended(first_offset, placed, now_ms if append_time else NO_TIMESTAMP)

    def append_as_follower(self, records: Buffer) -> Appended:
        """Append what the leader sent, offsets, epochs and timestamps as they are.

        Where the batches do not fit into one segment the log rolls between them.

        Raises:
            CorruptMessageError: bad checksums or offsets; nothing was appended.
            UnexpectedAppendOffset: the first offset is below the end of this log.
            KafkaStorageError: the disk failed; batches before may have been appended.
        """
        self._check_usable()
        batches = check_replicated(records, self.log_end_offset)
        now_ms = self._context.clock.wall_ms()
        room = self.config.segment_bytes - self._local.segments.active.size
        appended: list[PlacedBatch] = []
        for group in _groups(batches, room, self.config.segment_bytes):
            placed = [PlacedBatch(h.last_offset, h.size, h.max_timestamp) for h, _ in group]
            data: list[Buffer] = [batch.data for batch in group]
            self._write(data, placed, group[0].header.base_offset, now_ms)
            for header, _ in group:
                self._note_epoch(header.partition_leader_epoch, header.base_offset)
            appended += placed
        self._flush_if_due()
        first_offset = batches[0].header.base_offset if batches else self.log_end_offset
        return _appended(first_offset, appended, NO_TIMESTAMP)

    def _write(
        self, buffers: list[Buffer], placed: list[PlacedBatch], first_offset: int, now_ms: int
    ) -> None:
        with self._storage("append"):
            rolled = self._local.append(buffers, placed, first_offset, self.config, now_ms)
        if rolled:
            self._context.host.rolled(self)

    def _flush_if_due(self) -> None:
        """Not before the new epochs are noted: the recovery point must not pass them unsaved."""
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            with self._storage("flush"):
                self.flush()

    def _note_epoch(self, epoch: int, start_offset: int) -> None:
        if epoch >= 0 and self.leader_epochs.assign(epoch, start_offset):
            self._epochs_changed()

    def roll(self) -> None:
        """Begin a new segment at the log end offset, unless the active one is empty."""
        self._check_usable()
        if self._local.segments.active.size > 0:
            with self._storage("roll"):
                self._local.roll(self.log_end_offset, self.config, "asked to")
            self._context.host.rolled(self)

    # ---- reading

    def read(
        self, offset: int, max_bytes: int, end_offset: int, min_one_batch: bool = True
    ) -> bytes:
        """Whole batches from the one that holds `offset`, all of them below `end_offset`.

        With `min_one_batch` the first one is returned even if it exceeds `max_bytes`. Never more
        than one segment's.

        Raises:
            OffsetOutOfRangeError: below the log start offset or above the log end offset.
            CorruptMessageError, KafkaStorageError: the disk gave back something else.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition}: offset {offset} is not within"
                f" {self.log_start_offset}..{self.log_end_offset}"
            )
        self._check_usable()
        if offset >= end_offset or offset == self.log_end_offset:
            return b""
        with self._storage("read"):
            return self._local.read(offset, max_bytes, end_offset, min_one_batch)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record that is not older than `timestamp_ms`, or None if all are."""
        self._check_usable()
        with self._storage("read"):
            return self._local.first_at_or_after(timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """The first record with the largest timestamp, or None if none has one."""
        self._check_usable()
        with self._storage("read"):
            return self._local.first_of_largest_timestamp()

    # ---- epochs

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Where `epoch` ended in this log; (-1, -1) if it cannot know (KIP-279)."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def latest_epoch(self) -> int | None:
        return self.leader_epochs.latest_epoch()

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`, even before anything is written in it."""
        self._note_epoch(epoch, start_offset)

    def _epochs_changed(self) -> None:
        with self._storage("write the epochs"):
            self._context.host.epochs_changed(self)

    # ---- watermarks

    def update_high_watermark(self, offset: int) -> int:
        """Set it, as a follower does from its leader's; the value it took within this log."""
        self.high_watermark = self._clamp(offset)
        return self.high_watermark

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Raise it, as a leader does; whether it moved. ValueError above the log end offset."""
        if offset > self.log_end_offset:
            raise ValueError(
                f"{self.topic_partition}: high watermark {offset} above the log end offset"
                f" {self.log_end_offset}"
            )
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raise it; whether it moved. OffsetOutOfRangeError above the high watermark."""
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

    # ---- truncation

    def truncate_to(self, offset: int) -> bool:
        """Drop everything at `offset` and above; whether there was anything.

        A batch that holds `offset` in its middle goes as a whole. Even where nothing is cut,
        epochs in which nothing was written are forgotten.
        """
        self._check_usable()
        if offset < 0:
            raise ValueError(f"{self.topic_partition}: cannot truncate to {offset}")
        if offset >= self.log_end_offset:
            if self.leader_epochs.truncate_from_end(self.log_end_offset):
                self._epochs_changed()
            return False
        if offset < self._local.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        with self._storage("read"):
            border = self._local.border_at(offset)
        with self._cutting(border):
            self._context.host.discard(self, self._local.truncate_to(border, self.config))
            self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin an empty log at `offset`."""
        self._check_usable()
        with self._cutting(offset):
            self._context.host.discard(self, self._local.restart_at(offset, self.config))
            self.log_start_offset = offset
            self.leader_epochs.clear()

    @contextmanager
    def _cutting(self, offset: int) -> Iterator[None]:
        """Around a cut at `offset`: what is derived from the log's end is brought into line."""
        self._truncations += 1
        with self._storage("truncate"):
            self._context.host.before_truncation(self, offset)
            try:
                yield
            except CorruptBatch as error:  # half cut, so not to be used any more
                self.fail(OSError(errno.EIO, str(error)))
                raise
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.high_watermark = self._clamp(self.high_watermark)
        self.leader_epochs.truncate_from_end(self.log_end_offset)
        self._epochs_changed()

    # ---- retention

    def delete_old_segments(self, now_ms: int) -> int:
        """Let go of the segments that retention does not keep; how many there were."""
        self._check_usable()
        with self._storage("look at the segments"):
            facts = list(self._local.facts())
        deletions = segments_to_delete(
            facts, self.log_start_offset, self.high_watermark, self.config, now_ms
        )
        for deletion in deletions:
            self._delete_first(deletion)
        return sum(deletion.count for deletion in deletions)

    def _delete_first(self, deletion: Deletion) -> None:
        if deletion.count == len(self._local.segments):
            self.roll()
        removed = self._local.remove_first(deletion.count)
        start = max(self.log_start_offset, self._local.segments.first.base_offset)
        logger.info(
            "%s: deleting segments %s, %s; the log starts at %d",
            self.topic_partition,
            [segment.base_offset for segment in removed],
            deletion.reason,
            start,
        )
        self.maybe_increment_log_start_offset(start)
        with self._storage("delete segments"):
            self._context.host.discard(self, removed)

    # ---- flushing

    def flush(self, up_to: int | None = None) -> None:
        """fsync what lies below `up_to`, or all, before returning. Raises OSError."""
        plan = self.plan_flush(up_to)
        self.epoch_file.write()
        plan.run()
        self.complete_flush(plan)

    def plan_flush(self, up_to: int | None = None) -> FlushPlan:
        """What is to be flushed; `run` it anywhere, then `complete_flush` in the loop's turn."""
        end = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        segments = self._local.segments
        cut = self._truncations != self._durable_truncations  # a cut needs an fsync as a write does
        names_version = self._local.names_version
        # A segment that was flushed to its end while it was active was sealed after that: what its
        # indexes got then is not durable yet.
        last_flushed = max(self.recovery_point - 1, 0)
        return FlushPlan(
            end_offset=end,
            truncations=self._truncations,
            epoch_version=self.leader_epochs.version,
            names_version=names_version,
            segments=[
                (segment, segment is not segments.active)
                for segment in segments.from_offset(last_flushed)
                if cut or segment.base_offset < end > self.recovery_point
            ],
            directory=None if names_version == self._durable_names else self.directory,
            disk=self._disk,
        )

    def complete_flush(self, plan: FlushPlan) -> None:
        """Raise the recovery point, if nothing was cut meanwhile and the epochs are safe too."""
        self.last_flush_ms = self._context.clock.wall_ms()
        self._durable_names = max(self._durable_names, plan.names_version)
        self._durable_truncations = max(self._durable_truncations, plan.truncations)
        if (
            plan.truncations == self._truncations
            and self.epoch_file.durable_version >= plan.epoch_version
        ):
            self.recovery_point = max(self.recovery_point, plan.end_offset)

    # ---- the end

    @property
    def is_failed(self) -> bool:
        return self._failure is not None

    def close(self) -> None:
        """Save the indexes, durably, and close the files; `flush` before. Raises OSError."""
        self._local.close(save_indexes=self._failure is None)
        self.fail(OSError(errno.EBADF, "the log is closed"))

    def fail(self, error: OSError) -> None:
        """Refuse everything from now on."""
        self._failure = self._failure or error

    @contextmanager
    def _storage(self, what: str) -> Iterator[None]:
        """Around I/O: its errors as Kafka's. After an OSError this log is not used again."""
        try:
            yield
        except CorruptBatch as error:
            raise CorruptMessageError(f"{self.topic_partition}: {error}") from error
        except OSError as error:
            logger.error("%s: could not %s: %s", self.topic_partition, what, error)
            self.fail(error)
            self._context.host.log_failed(self, error)
            raise KafkaStorageError(f"{self.topic_partition}: could not {what}: {error}") from error

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise KafkaStorageError(f"{self.topic_partition}: cannot be used: {self._failure}")


def _appended(first_offset: int, placed: list[PlacedBatch], append_time_ms: int) -> Appended:
    return Appended(
        first_offset,
        placed[-1].last_offset if placed else first_offset - 1,
        append_time_ms,
        max((batch.max_timestamp for batch in placed), default=NO_TIMESTAMP),
        len(placed),
        sum(batch.size for batch in placed),
    )


def _groups(
    batches: Iterable[CheckedBatch], room: int, segment_bytes: int
) -> Iterable[list[CheckedBatch]]:
    """The batches in as many appends as they need segments."""
    group: list[CheckedBatch] = []
    for batch in batches:
        if group and batch.header.size > room:
            yield group
            group, room = [], segment_bytes
        group.append(batch)
        room -= batch.header.size
    if group:
        yield group

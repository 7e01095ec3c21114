"""Opening a log's folder: after a clean shutdown by trust, after a crash by reading.

After a crash every segment from the recovery point on is scanned, batch by batch with its checksum.
The log ends before the first one that is torn, corrupt or missing; what follows is cut off, later
segments included, and the log of the broker says so. Indexes and leader epochs above the recovery
point come out of the same scan.

Runs off the loop. I/O errors are OSError.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from barnabas.record.batch import CorruptBatch
from barnabas.topic_partition import TopicPartition

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.disk import Disk
from barnabas_broker.log import leader_epoch_file, offset_index, time_index
from barnabas_broker.log.batch_scan import sound_batches
from barnabas_broker.log.checkpoint_file import decode_epochs
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.leader_epoch_cache import LeaderEpochCache
from barnabas_broker.log.segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    PlacedBatch,
    Segment,
)

logger = logging.getLogger(__name__)

_INDEX_SUFFIXES = (offset_index.SUFFIX, time_index.SUFFIX)
_BASE_DIGITS = 20

# The segments that stay, and what was cut off behind them and why; empty: nothing.
Opened = tuple[list[Segment], str]


@dataclass(frozen=True)
class LogCheckpoint:
    """What the data directory's checkpoints say of a log. `is_clean`: it was closed in order."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    is_clean: bool = False


@dataclass(frozen=True)
class LogFolder:
    """Which log is to be opened, where, and with which settings."""

    disk: Disk
    path: str
    topic_partition: TopicPartition
    config: LogConfig


@dataclass
class LoadedLog:
    """`cut`: why the log ends earlier than its files did; empty if nothing was cut off.
    `damaged_epochs`: what is wrong with the epochs' file; they were read from the batches."""

    segments: list[Segment]
    epochs: LeaderEpochCache
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    cut: str = ""
    damaged_epochs: str = ""


def load(folder: LogFolder, checkpoint: LogCheckpoint) -> LoadedLog:
    """Open what is there, or begin an empty log."""
    _clear_leftovers(folder)
    if not checkpoint.is_clean:  # what is found here must still be here after a power cut
        folder.disk.sync_directory(folder.path)
    epochs, damaged = _read_epochs(folder)
    if epochs is None:  # the batches know their epochs; all of them are asked
        epochs = LeaderEpochCache()
        checkpoint = replace(checkpoint, is_clean=False, recovery_point=0)
    segments = [Segment(folder.disk, folder.path, b, folder.config) for b in segment_bases(folder)]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    if checkpoint.is_clean:
        segments, cut = _open_clean(folder, segments, epochs)
    else:
        segments, cut = _open_after_crash(folder, segments, epochs, checkpoint.recovery_point)
    if segments and segments[-1].next_offset < checkpoint.log_start_offset:
        logger.warning(
            "%s: ends at %d, below its log start offset %d; starting anew there",
            folder.topic_partition,
            segments[-1].next_offset,
            checkpoint.log_start_offset,
        )
        cut = cut or f"it ended below its log start offset {checkpoint.log_start_offset}"
        _remove(folder, segments)
        epochs.clear()
        segments = []
    loaded = _loaded(folder, segments, epochs, checkpoint)
    return replace(loaded, cut=cut, damaged_epochs=damaged)


def _loaded(
    folder: LogFolder,
    segments: list[Segment],
    epochs: LeaderEpochCache,
    checkpoint: LogCheckpoint,
) -> LoadedLog:
    if not segments:
        segments = [Segment(folder.disk, folder.path, checkpoint.log_start_offset, folder.config)]
        segments[0].create_indexes()
    log_end_offset = segments[-1].next_offset
    log_start_offset = max(checkpoint.log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(log_end_offset)
    epochs.truncate_from_start(log_start_offset)
    recovery_point = min(checkpoint.recovery_point, log_end_offset)
    return LoadedLog(
        segments,
        epochs,
        log_start_offset,
        log_end_offset,
        log_end_offset if checkpoint.is_clean else recovery_point,
    )


def _open_clean(folder: LogFolder, segments: list[Segment], epochs: LeaderEpochCache) -> Opened:
    """Trust the files, as far as a glance at the indexes goes."""
    for number, segment in enumerate(segments):
        sound = segment.open_indexes()
        if sound and segment is segments[-1]:
            sound = _catch_up(segment)
        if not sound:
            logger.warning(
                "%s: the indexes of segment %d are missing or wrong; reading it again",
                folder.topic_partition,
                segment.base_offset,
            )
            reason = _recover(folder, segment, epochs, segment is not segments[-1])
            if reason is not None:
                return _cut_after(folder, segments, number, reason)
    return segments, ""


def _catch_up(segment: Segment) -> bool:
    try:
        segment.catch_up()
    except CorruptBatch:
        return False
    return True


def _open_after_crash(
    folder: LogFolder,
    segments: list[Segment],
    epochs: LeaderEpochCache,
    recovery_point: int,
) -> Opened:
    # The one that ends at the recovery point may have been sealed after it was flushed: its batches
    # are durable, its indexes need not be.
    first = first_to_recover([segment.base_offset for segment in segments], recovery_point)
    if segments:
        epochs.truncate_from_end(segments[first].base_offset)
    for number, segment in enumerate(segments):
        if number < first and segment.open_indexes():
            continue
        if number > 0 and segment.base_offset != segments[number - 1].next_offset:
            # The unflushed end of a segment can vanish at the border of a batch. A log with a hole
            # would differ from its replicas for ever; one that ends early is filled up by them.
            reason = f"segment {segment.base_offset} does not continue it"
            return _cut_after(folder, segments, number - 1, reason)
        fault = _recover(folder, segment, epochs, segment is not segments[-1])
        if fault is not None:
            return _cut_after(folder, segments, number, fault)
    return segments, ""


def first_to_recover(bases: Sequence[int], recovery_point: int) -> int:
    """The number of the first segment that need not be durable as a whole."""
    return max(0, sum(base < recovery_point for base in bases) - 1)


def _recover(
    folder: LogFolder, segment: Segment, epochs: LeaderEpochCache, seal: bool
) -> str | None:
    """Read the whole segment, rebuild its indexes; if a tail was cut off, why."""
    segment.reset()
    end, fault = 0, None
    try:
        for position, header in sound_batches(segment.log, segment.base_offset):
            placed = PlacedBatch(header.last_offset, header.size, header.max_timestamp)
            segment.note(placed, position, folder.config.index_interval_bytes)
            end = position + header.size
            latest = epochs.latest_epoch()
            if header.partition_leader_epoch > (-1 if latest is None else latest):
                epochs.assign(header.partition_leader_epoch, header.base_offset)
    except CorruptBatch as error:
        fault = str(error)
    if end < segment.size:
        fault = f"{fault}; {segment.size - end} bytes of segment {segment.base_offset} cut off"
        segment.log.truncate(end)
        segment.log.flush()
    if seal:
        segment.seal()
    else:
        segment.save_indexes()
    return fault


def _cut_after(folder: LogFolder, segments: list[Segment], number: int, reason: str) -> Opened:
    """Let segment `number` be the last, because of what was found in or after it."""
    kept, lost = segments[: number + 1], segments[number + 1 :]
    lost_bytes = sum(segment.size for segment in lost)
    logger.error(
        "%s: CORRUPT, the log now ends at offset %d: %s; %d later segments with %d bytes removed",
        folder.topic_partition,
        kept[-1].next_offset,
        reason,
        len(lost),
        lost_bytes,
    )
    _remove(folder, lost)
    kept[-1].offset_index.unseal()
    kept[-1].time_index.unseal()
    if lost:
        reason += f"; {len(lost)} later segments with {lost_bytes} bytes removed"
    return kept, reason


def _remove(folder: LogFolder, segments: Sequence[Segment]) -> None:
    """Durably, before anything is written in their place; the newest first, to leave no hole."""
    for segment in reversed(segments):
        segment.destroy()
    folder.disk.sync_directory(folder.path)


def _clear_leftovers(folder: LogFolder) -> None:
    """Files on their way out when the broker stopped, and indexes without a log."""
    names = folder.disk.list(folder.path)
    bases = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    for name in names:
        orphan = any(
            name.endswith(suffix) and name.removesuffix(suffix) not in bases
            for suffix in _INDEX_SUFFIXES
        )
        if orphan or name.endswith((DELETED_SUFFIX, ".tmp", ".staged")):
            logger.info("%s: removing %s", folder.topic_partition, name)
            folder.disk.remove(f"{folder.path}/{name}")


def segment_bases(folder: LogFolder) -> list[int]:
    """The base offsets of the segments in a log's folder, in order."""
    stems = (
        name.removesuffix(LOG_SUFFIX)
        for name in folder.disk.list(folder.path)
        if name.endswith(LOG_SUFFIX)
    )
    return sorted(int(stem) for stem in stems if stem.isdigit() and len(stem) == _BASE_DIGITS)


def _read_epochs(folder: LogFolder) -> tuple[LeaderEpochCache | None, str]:
    """None if the file is missing or damaged; if damaged, how."""
    path = f"{folder.path}/{leader_epoch_file.NAME}"
    if not folder.disk.exists(path):
        return None, ""
    try:
        return LeaderEpochCache(decode_epochs(folder.disk.read_file(path))), ""
    except MalformedCheckpoint as error:
        logger.error("%s: %s: %s", folder.topic_partition, path, error)
        return None, str(error)

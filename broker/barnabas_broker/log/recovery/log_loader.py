"""Opening a log's folder (Kafka's `LogLoader`).

After a clean shutdown the files are trusted. After an unclean one every segment above the recovery
point is scanned, batch by batch with its checksum. The log ends before the first batch that is
torn, corrupt or missing; the rest is removed, later segments included. The same scan rebuilds the
indexes and leader epochs above the recovery point.

A log that would lose whole batches, although no power loss explains it, is not changed: its broker
must leave the ISR first.

Runs off the event loop. I/O errors are OSError.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from barnabas_common.record.batch import CorruptBatch

from barnabas_broker.log.epochs.leader_epoch_cache import LeaderEpochCache
from barnabas_broker.log.errors import DamagedLogError
from barnabas_broker.log.recovery.compaction_files import settle_compaction
from barnabas_broker.log.recovery.epoch_scan import EpochScan, WrongEpoch
from barnabas_broker.log.recovery.leftovers import clear_leftovers, finish_deletions
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint, LogFolder
from barnabas_broker.log.recovery.log_start import without_contradicted_start, without_wrong_start
from barnabas_broker.log.recovery.missing_batches import (
    first_missing,
    first_not_deleted,
    first_without_log,
)
from barnabas_broker.log.recovery.stored_epochs import (
    OutdatedEpochs,
    check_not_outdated,
    forget_epochs,
    read_epochs,
)
from barnabas_broker.log.recovery.stored_transactions import check_transactions
from barnabas_broker.log.segment.batch_scan import DamagedBatch, TornBatch, verified_batches
from barnabas_broker.log.segment.roll import MAX_RELATIVE_OFFSET
from barnabas_broker.log.segment.segment import PlacedBatch, Segment, new_segment
from barnabas_broker.log.segment.segment_files import LOG_SUFFIX

logger = logging.getLogger(__name__)

_BASE_DIGITS = 20

# The segments that are kept, and what was removed behind them and why; empty: nothing.
Opened = tuple[list[Segment], str]


class Fault(NamedTuple):
    """Why a log must end in a segment, and after how many bytes of it."""

    reason: str
    end: int


@dataclass
class LoadedLog:
    """`cut`: what was removed from the end of the log and why; empty: nothing.
    `damaged_epochs`: what is wrong with the epoch file; the epochs are from the batches.
    `missing`: where batches are missing between segments."""

    segments: list[Segment]
    epochs: LeaderEpochCache
    log_start_offset: int
    recovery_point: int
    cut: str
    damaged_epochs: str
    missing: DamagedBatch | None


def load(folder: LogFolder, checkpoint: LogCheckpoint) -> LoadedLog:
    """Open the existing segments, or create an empty log.

    Raises:
        DamagedLogError: it would lose committed records; nothing was removed.
    """
    outdated, wrong = "", None
    while True:
        try:
            loaded = _load(folder, checkpoint, bool(outdated), wrong)
            break
        except OutdatedEpochs as fault:
            outdated = str(fault)
        except WrongEpoch as fault:  # each time at a lower offset
            wrong = fault
    if outdated:
        loaded.damaged_epochs = outdated
        forget_epochs(folder.disk, folder.path)
    finish_deletions(folder.disk, folder.path, loaded.epochs)
    return loaded


def _load(
    folder: LogFolder,
    checkpoint: LogCheckpoint,
    is_outdated: bool,
    wrong: WrongEpoch | None,
) -> LoadedLog:
    names = folder.disk.list(folder.path)
    clear_leftovers(folder.disk, folder.path, folder.topic_partition)
    settle_compaction(folder.disk, folder.path, folder.topic_partition)
    if not checkpoint.is_clean:  # the files found must survive a power loss
        folder.disk.sync_directory(folder.path)
    stored, damaged = read_epochs(folder.disk, folder.path)
    epochs = None if is_outdated else stored
    entries = [] if stored is None else stored.entries
    complete_below = checkpoint.epochs_stored_below
    first_epoch = None if epochs is None else epochs.entries[0].start_offset
    checkpoint = without_contradicted_start(folder, first_epoch, checkpoint)
    if epochs is None:  # all batches are read for their epochs
        epochs = LeaderEpochCache()
        clean_offset = None if checkpoint.clean_offset is None else checkpoint.gaps_below
        checkpoint = replace(
            checkpoint, is_clean=False, recovery_point=0, clean_offset=clean_offset
        )
    segments = [Segment(folder.disk, folder.path, b, folder.config) for b in segment_bases(folder)]
    _set_ends(segments)
    scan = EpochScan(epochs, LeaderEpochCache(entries), complete_below, wrong, is_outdated)
    try:
        if checkpoint.is_clean:
            segments, cut = _open_clean(folder, segments, epochs, checkpoint, scan)
        else:
            segments, cut = _open_after_crash(folder, segments, epochs, checkpoint, scan)
        scan.finish()
        _check_end(segments, checkpoint)
    except (DamagedLogError, OutdatedEpochs, WrongEpoch):
        for segment in segments:
            segment.close()
        raise
    checkpoint = without_wrong_start(folder, segments, checkpoint)
    if segments and segments[-1].next_offset < checkpoint.log_start_offset:
        cut = cut or _all_is_below_start(folder, segments, checkpoint)
        _remove(folder, segments)
        epochs.clear()
        segments = []
    if not segments:
        start = checkpoint.log_start_offset
        segments = [new_segment(folder.disk, folder.path, start, folder.config)]
    _set_ends(segments)
    check_transactions(segments)
    log_end_offset = segments[-1].next_offset
    log_start_offset = max(checkpoint.log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(log_end_offset)
    epochs.truncate_from_start(log_start_offset)
    recovery_point = min(checkpoint.recovery_point, log_end_offset)
    if checkpoint.is_clean:
        recovery_point = log_end_offset
    missing = _missing(segments, log_start_offset, checkpoint, first_epoch, names)
    return LoadedLog(segments, epochs, log_start_offset, recovery_point, cut, damaged, missing)


def _all_is_below_start(
    folder: LogFolder, segments: Sequence[Segment], checkpoint: LogCheckpoint
) -> str:
    """Say that the whole log is removed, and why."""
    reason = f"it ended below its log start offset {checkpoint.log_start_offset}"
    end = segments[-1].next_offset
    logger.warning("%s: %s, at %d; starting there", folder.topic_partition, reason, end)
    return reason


def _missing(
    segments: Sequence[Segment],
    log_start_offset: int,
    checkpoint: LogCheckpoint,
    first_epoch: int | None,
    names: Collection[str],
) -> DamagedBatch | None:
    """The first batches that are missing. `names` are the files found in the folder."""
    first = segments[0].base_offset
    begins = [first_without_log(names)] if checkpoint.is_complete else []
    if first > checkpoint.log_start_offset:
        begins.append(first_not_deleted(names, first_epoch))
    lost = [one for one in begins if one is not None and one < log_start_offset]
    if lost:
        return DamagedBatch(min(lost), f"what comes before {log_start_offset} is missing")
    return first_missing(segments, log_start_offset, checkpoint.gaps_below)


def _open_clean(
    folder: LogFolder,
    segments: list[Segment],
    epochs: LeaderEpochCache,
    checkpoint: LogCheckpoint,
    scan: EpochScan,
) -> Opened:
    """Trust the files, after a plausibility check of the indexes."""
    for number, segment in enumerate(segments):
        valid = segment.open_indexes() and not scan.found_below(segment.next_offset)
        if valid and segment is segments[-1]:
            valid = _catch_up(segment) and checkpoint.closed_at in (None, segment.next_offset)
        if not valid:
            logger.warning(
                "%s: the indexes of segment %d are missing or wrong; reading it again",
                folder.topic_partition,
                segment.base_offset,
            )
            is_last = segment is segments[-1]
            fault = _recover(folder, segment, scan, checkpoint, seal=not is_last)
            if fault is not None:
                return _cut_after(folder, segments, number, fault)
    check_not_outdated(epochs, segments)
    return segments, ""


def _continues(segment: Segment, before: Segment, checkpoint: LogCheckpoint) -> bool:
    """Whether a segment follows the one before it; compaction may have left a gap between them."""
    if before.next_offset < segment.base_offset <= checkpoint.gaps_below:
        return True
    return segment.base_offset == before.next_offset


def _set_ends(segments: Sequence[Segment]) -> None:
    """Let every sealed segment end where the next one begins: its last records may be gone."""
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset


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
    checkpoint: LogCheckpoint,
    scan: EpochScan,
) -> Opened:
    # The segment that ends at the recovery point may have been sealed after it was flushed: its
    # batches are durable, its indexes need not be.
    bases = [segment.base_offset for segment in segments]
    first = first_to_recover(bases, checkpoint.recovery_point)
    if segments:
        # Below the recovery point the epochs are durable, and compaction may have removed the batch
        # with which one of them began.
        epochs.truncate_from_end(max(segments[first].base_offset, checkpoint.recovery_point))
    for number, segment in enumerate(segments):
        if number < first and segment.open_indexes():
            continue
        if number == first and epochs.epoch_for_offset(segment.base_offset) is not None:
            check_not_outdated(epochs, segments[:first])
        if number > 0 and not _continues(segment, segments[number - 1], checkpoint):
            # A power loss can remove the unflushed end of a segment at the border of a batch. A log
            # with a gap would differ from its replicas forever; one that ends early fetches again.
            reason = f"segment {segment.base_offset} does not continue it"
            before = segments[number - 1]
            _check_may_end(before.next_offset, checkpoint, reason)
            return _cut_after(folder, segments, number - 1, Fault(reason, before.size))
        is_last = segment is segments[-1]
        fault = _recover(folder, segment, scan, checkpoint, seal=not is_last)
        if fault is not None:
            return _cut_after(folder, segments, number, fault)
    return segments, ""


def first_to_recover(bases: Sequence[int], recovery_point: int) -> int:
    """The index of the first segment that may not be entirely durable."""
    return max(0, sum(base < recovery_point for base in bases) - 1)


def _check_may_end(
    offset: int, checkpoint: LogCheckpoint, fault: str, is_torn: bool = False
) -> None:
    """Raise DamagedLogError if the log must not end at `offset`.

    The high watermark may have risen since it was written to the checkpoint. So without a power
    loss only the batch that a process was writing when it died may go: the file ends inside it.
    """
    if offset < checkpoint.least_end:
        what = "high watermark" if checkpoint.is_complete else "flushed end"
        where = f"below its {what} {checkpoint.least_end}"
        raise DamagedLogError(f"it is damaged at offset {offset}, {where}: {fault}")
    if checkpoint.is_clean or (checkpoint.is_unbroken and not is_torn):
        raise DamagedLogError(f"it is damaged at offset {offset}: {fault}")


def _check_end(segments: Sequence[Segment], checkpoint: LogCheckpoint) -> None:
    """Raise DamagedLogError if the end of the log is missing: a file is empty, shorter or gone.

    What truncates a log lowers its high watermark in the checkpoint first.
    """
    end = segments[-1].next_offset if segments else checkpoint.log_start_offset
    is_wrong_number = checkpoint.is_clean and segments and end == checkpoint.recovery_point
    if end < checkpoint.least_end and not is_wrong_number:
        _check_may_end(end, checkpoint, "the records that follow are missing")


def _recover(
    folder: LogFolder,
    segment: Segment,
    scan: EpochScan,
    checkpoint: LogCheckpoint,
    seal: bool,
) -> Fault | None:
    """Read the whole segment and rebuild its indexes; return why its end must go, or None."""
    base_offset = segment.base_offset
    end_offset = base_offset + MAX_RELATIVE_OFFSET + 1
    if seal:
        segment.begin_rebuild()
        end_offset = min(end_offset, segment.next_offset)
    elif checkpoint.closed_at is not None:
        end_offset = min(end_offset, checkpoint.closed_at)
    segment.reset()
    end, fault = 0, None
    try:
        for position, header in verified_batches(segment.log, base_offset, end_offset):
            scan.note(header)
            placed = PlacedBatch(header.last_offset, header.size, header.max_timestamp)
            segment.note(placed, position, folder.config.index_interval_bytes)
            end = position + header.size
    except CorruptBatch as error:
        fault = str(error)
        is_torn = isinstance(error, TornBatch) and not seal
        _check_may_end(segment.next_offset, checkpoint, fault, is_torn)
    if seal:
        segment.seal()
    else:
        scan.finish()  # a log that is refused keeps no index that the next start would trust
        segment.save_indexes()
    segment.is_verified = True  # up to where it may be cut
    if fault is None:
        return None
    removed = f"{segment.size - end} bytes of segment {segment.base_offset} removed"
    return Fault(f"{fault}; {removed}", end)


def _cut_after(folder: LogFolder, segments: list[Segment], number: int, fault: Fault) -> Opened:
    """Make segment `number` the last one, because of a fault in or after it.

    Its end goes last: if the broker dies before, the next start finds the same fault.
    """
    kept, lost = segments[: number + 1], segments[number + 1 :]
    lost_bytes, reason = sum(segment.size for segment in lost), fault.reason
    logger.error(
        "%s: CORRUPT, the log now ends at offset %d: %s; %d later segments with %d bytes removed",
        folder.topic_partition,
        kept[-1].next_offset,
        reason,
        len(lost),
        lost_bytes,
    )
    _remove(folder, lost)
    if fault.end < kept[-1].size:
        kept[-1].log.truncate(fault.end)
        kept[-1].log.flush()
    kept[-1].unseal_indexes()
    if lost:
        reason += f"; {len(lost)} later segments with {lost_bytes} bytes removed"
    return kept, reason


def _remove(folder: LogFolder, segments: Sequence[Segment]) -> None:
    """Remove segments durably, before they are overwritten; the newest first, to leave no gap."""
    for segment in reversed(segments):
        segment.destroy()
    folder.disk.sync_directory(folder.path)


def segment_bases(folder: LogFolder) -> list[int]:
    """The base offsets of the segments in a log's folder, ascending."""
    stems = (
        name.removesuffix(LOG_SUFFIX)
        for name in folder.disk.list(folder.path)
        if name.endswith(LOG_SUFFIX)
    )
    return sorted(int(stem) for stem in stems if stem.isdigit() and len(stem) == _BASE_DIGITS)

"""What a start takes from a log's `leader-epoch-checkpoint`, and how it notices that it is wrong.

Epochs that are not used are read from the batches. I/O errors are OSError.
"""

from collections.abc import Sequence

from barnabas_common.record.batch import CorruptBatch

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.checkpoint.checkpoint_file import decode_epochs
from barnabas_broker.log.epochs import leader_epoch_file
from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, LeaderEpochCache
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.segment.segment import Segment

FAR = 1000
"""Epochs rise one by one, unless an election by the logs has raised them by more. A batch whose
epoch is so much higher, and not in the file, is taken for one with a changed bit."""


class OutdatedEpochs(Exception):
    """The file is an older one, or wrong; the message says how that was noticed."""


def read_epochs(disk: Disk, directory: str) -> tuple[LeaderEpochCache | None, str]:
    """The epochs, None if the file is missing, empty or damaged; and what is wrong with it.

    A log without batches has no epochs either, and costs nothing to read.
    """
    path = f"{directory}/{leader_epoch_file.NAME}"
    if not disk.exists(path):
        return None, ""
    try:
        entries = decode_epochs(disk.read_file(path))
    except MalformedCheckpoint as error:
        return None, str(error)
    return LeaderEpochCache(entries) if entries else None, ""


def forget_epochs(disk: Disk, directory: str) -> None:
    """Empty the file, so that this start reads the batches, and also the next one if this dies."""
    disk.write_file(f"{directory}/{leader_epoch_file.NAME}", b"")


def check_not_outdated(epochs: LeaderEpochCache, segments: Sequence[Segment]) -> None:
    """Raise OutdatedEpochs if the file lacks the epoch of the last batch in flushed segments.

    A file from before that epoch began is valid. It is written before its batches count as flushed.
    """
    written = next((one for one in reversed(segments) if one.size), None)
    try:
        last = written.last_batch() if written is not None else None
    except CorruptBatch:
        return  # found where the batch is read
    if last is None:
        return
    latest = epochs.epoch_for_offset(segments[-1].next_offset)
    known = UNDEFINED if latest is None else latest
    if known < last.partition_leader_epoch <= known + FAR:
        raise OutdatedEpochs(
            f"the last epoch in it is {known}, and the batch at offset {last.base_offset} has epoch"
            f" {last.partition_leader_epoch}"
        )

"""Log starts in the checkpoint that cannot be right: they would delete records."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint, LogFolder
from barnabas_broker.log.segment.segment import Segment

logger = logging.getLogger(__name__)


def without_contradicted_start(
    folder: LogFolder, first_epoch: int | None, checkpoint: LogCheckpoint
) -> LogCheckpoint:
    """The first epoch starts where the log does, or above, and is written first: where nothing was
    lost, a log start above it is a wrong number, and would delete records."""
    if first_epoch is None or not checkpoint.is_complete:
        return checkpoint
    if checkpoint.log_start_offset <= first_epoch:
        return checkpoint
    logger.error(
        "%s: its log start offset %d in the checkpoint is above the start of its first epoch, %d,"
        " which is used",
        folder.topic_partition,
        checkpoint.log_start_offset,
        first_epoch,
    )
    return replace(checkpoint, log_start_offset=first_epoch)


def without_wrong_start(
    folder: LogFolder, segments: Sequence[Segment], checkpoint: LogCheckpoint
) -> LogCheckpoint:
    """A log start is never above what is committed. Where nothing was lost, one above the end of
    the log is a wrong number."""
    start = checkpoint.log_start_offset
    if not (checkpoint.is_complete and segments and segments[-1].next_offset < start):
        return checkpoint
    logger.error(
        "%s: its log start offset %d in the checkpoint is above its end %d, and is not used",
        folder.topic_partition,
        start,
        segments[-1].next_offset,
    )
    return replace(checkpoint, log_start_offset=0)

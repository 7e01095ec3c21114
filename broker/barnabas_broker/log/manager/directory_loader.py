"""Loading all logs of a data directory at the start of a broker, with limited concurrency."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_common.runtime import Offload
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, keys
from barnabas_broker.config.key import MAX_LONG
from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.errors import DamagedLogError, UnknownTopicIdError
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.manager.log_directory import LogDirectory
from barnabas_broker.log.manager.log_folders import (
    is_being_deleted,
    is_kept_aside,
    parse_folder_name,
)
from barnabas_broker.log.manager.run_limited import run_limited
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint, LogFolder
from barnabas_broker.log.recovery.lost_logs import LostLog
from barnabas_broker.log.recovery.rewrite import rewrite_unflushed
from barnabas_broker.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)


@dataclass
class LoadedDirectory:
    """`to_delete`: folders whose deletion was not finished.
    `had_clean_shutdown`: the directory has the marker of a clean shutdown, or no logs.
    `named`: the logs that the checkpoints name, each with its high watermark.
    `damaged`: logs that would lose committed records if they were opened, or whose topic is
    unknown."""

    logs: list[UnifiedLog] = field(default_factory=list)
    to_delete: list[str] = field(default_factory=list)
    had_clean_shutdown: bool = True
    named: dict[TopicPartition, int] = field(default_factory=dict)
    damaged: dict[TopicPartition, LostLog] = field(default_factory=dict)


async def load_directory(
    directory: LogDirectory, config: Config, offload: Offload, context: LogContext
) -> LoadedDirectory:
    """Open every log, with the broker's settings: those of the topics are not known yet.

    Raises:
        OSError: the directory cannot be used.
    """
    is_clean = await offload.run(directory.take_clean_shutdown)
    stored = directory.checkpoints.read()
    # Without knowing which logs are compacted, a gap below the recovery point, where nothing can be
    # lost, is taken for one of compaction: otherwise a whole compacted log could be cut off there.
    unknown_clean_offset = 0 if directory.checkpoints.has_damaged_clean_offsets else None
    result = LoadedDirectory(named=dict.fromkeys(stored.recovery_points, 0))
    result.named |= stored.high_watermarks

    async def load(name: TopicPartition) -> None:
        folder = LogFolder(context.disk, f"{directory.path}/{name}", name, config.log_config())
        recovery_point = stored.recovery_points.get(name, 0)
        high_watermark = stored.high_watermarks.get(name, 0)
        checkpoint = LogCheckpoint(
            recovery_point,
            stored.log_starts.get(name, 0),
            high_watermark,
            is_clean,
            is_unbroken=directory.history.unbroken_since is not None,
            flushed_up_to=_flushed_up_to(directory, recovery_point, high_watermark),
            clean_offset=stored.clean_offsets.get(name, unknown_clean_offset),
            epochs_stored_below=MAX_LONG if is_clean else max(recovery_point, high_watermark),
        )
        try:
            log = await offload.run(
                directory.watched, _open, directory, context, folder, checkpoint
            )
        except (DamagedLogError, UnknownTopicIdError) as error:
            result.damaged[name] = LostLog(directory.path, checkpoint.high_watermark, str(error))
            return
        result.logs.append(log)
        if log.cut_at_start or log.log_end_offset < checkpoint.recovery_point:
            # Cut now, or by a start that died. What is appended would count as flushed up to the
            # old recovery point.
            directory.checkpoints.lower(name, log.log_end_offset)
        directory.checkpoints.log_ends_at(name, log.log_end_offset)
        logger.info("%s, high watermark %d", log, log.high_watermark)

    names = _find_logs(context.disk, directory, result)
    result.had_clean_shutdown = is_clean or not names
    if not result.had_clean_shutdown:
        logger.warning(
            "%s was not shut down cleanly: recovering %d logs", directory.path, len(names)
        )
    await run_limited(load, names, config[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR])
    result.logs.sort(key=lambda log: log.topic_partition)
    foreign = _foreign_clean_offsets(directory.checkpoints.clean_offsets, result, names)
    await offload.run(directory.checkpoints.leave_out_clean_offsets, foreign)
    if directory.checkpoints.has_damaged_log_starts:
        await offload.run(directory.checkpoints.clean_again_from_start, result.logs)
    return result


def _flushed_up_to(directory: LogDirectory, recovery_point: int, high_watermark: int) -> int:
    """The numbers have no checksum: one alone does not show that records are missing."""
    return 0 if directory.history.is_new else min(recovery_point, high_watermark)


def _foreign_clean_offsets(
    clean_offsets: Mapping[TopicPartition, int],
    result: LoadedDirectory,
    names: Sequence[TopicPartition],
) -> dict[TopicPartition, str]:
    """The clean offsets that cannot belong to the logs here, and why. They would keep a log from
    being compacted."""
    ends = {log.topic_partition: log.log_end_offset for log in result.logs}
    foreign = {}
    for name, offset in clean_offsets.items():
        if name in ends and offset > ends[name]:
            foreign[name] = f"clean offset {offset} is above the log end offset {ends[name]}"
        elif name not in names and name not in result.named:
            foreign[name] = "there is no log of that name"
    return foreign


def _find_logs(
    disk: Disk, directory: LogDirectory, result: LoadedDirectory
) -> list[TopicPartition]:
    """The logs by their folders; folders whose deletion was not finished go to the result."""
    found = []
    for name in disk.list(directory.path):
        path = f"{directory.path}/{name}"
        if not disk.is_directory(path):
            continue
        topic_partition = None if is_kept_aside(name) else parse_folder_name(name)
        if is_being_deleted(name):
            result.to_delete.append(path)
        elif topic_partition is None:
            logger.warning("%s is not a partition's folder and is not used", path)
        else:
            found.append(topic_partition)
    return found


def _open(
    directory: LogDirectory, context: LogContext, folder: LogFolder, checkpoint: LogCheckpoint
) -> UnifiedLog:
    if directory.had_failed_flush:
        rewrite_unflushed(folder, checkpoint.recovery_point)
    return UnifiedLog(context, folder, checkpoint)

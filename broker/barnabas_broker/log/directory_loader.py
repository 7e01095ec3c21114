"""Loading all logs of a data directory at the start of a broker, a few at once."""

import asyncio
import logging
from dataclasses import dataclass, field

from barnabas.runtime import Offload
from barnabas.topic_partition import TopicPartition

from barnabas_broker.config import Config, keys
from barnabas_broker.log.errors import UnusableLog
from barnabas_broker.log.log import Log
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.log_directory import LogDirectory
from barnabas_broker.log.log_folders import is_being_deleted, is_kept_aside, parse_folder_name
from barnabas_broker.log.log_loader import LogCheckpoint, LogFolder
from barnabas_broker.log.rewrite import rewrite_unflushed

logger = logging.getLogger(__name__)


@dataclass
class LoadedDirectory:
    """`unusable`: partitions that are here and cannot be opened, and why.
    `to_delete`: folders whose deletion was not finished.
    `left_in_order`: with the mark of a clean shutdown, or without any log.
    `named`: the logs that the checkpoints know, each with its high watermark."""

    logs: list[Log] = field(default_factory=list)
    unusable: dict[TopicPartition, str] = field(default_factory=dict)
    to_delete: list[str] = field(default_factory=list)
    left_in_order: bool = True
    named: dict[TopicPartition, int] = field(default_factory=dict)


class DirectoryLoader:
    """Used by the log manager, once for each directory."""

    def __init__(self, config: Config, offload: Offload, context: LogContext) -> None:
        self._config = config
        self._offload = offload
        self._context = context
        self._limit = asyncio.Semaphore(config[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR])

    async def load(self, directory: LogDirectory) -> LoadedDirectory:
        """Open every log. The settings of the topics are not known yet: the broker's serve.

        Raises:
            OSError: the directory cannot be used.
        """
        is_clean = await self._offload.run(directory.take_clean_shutdown)
        directory.stored_recovery_points = directory.read_checkpoint(directory.recovery_points)
        directory.stored_log_starts = directory.read_checkpoint(directory.log_starts)
        high_watermarks = directory.read_checkpoint(directory.high_watermarks)
        result = LoadedDirectory()
        result.named = dict.fromkeys(directory.stored_recovery_points, 0) | high_watermarks
        jobs = []
        for name in self._folders(directory, result):
            topic_partition = parse_folder_name(name)
            assert topic_partition is not None
            checkpoint = LogCheckpoint(
                directory.stored_recovery_points.get(topic_partition, 0),
                directory.stored_log_starts.get(topic_partition, 0),
                high_watermarks.get(topic_partition, 0),
                is_clean,
            )
            path = f"{directory.path}/{name}"
            folder = LogFolder(self._context.disk, path, topic_partition, self._config.log_config())
            jobs.append(self._load(directory, folder, checkpoint, result))
        result.left_in_order = is_clean or not jobs
        if jobs and directory.was_in_doubt:
            logger.warning(
                "%s: a flush had failed; what lies above the recovery points is written anew",
                directory.path,
            )
        if jobs and not is_clean:
            logger.warning(
                "%s was not left in order: recovering %d logs", directory.path, len(jobs)
            )
        errors = await asyncio.gather(*jobs, return_exceptions=True)
        for error in errors:
            if isinstance(error, BaseException):
                raise error
        result.logs.sort(key=lambda log: log.topic_partition)
        return result

    def _folders(self, directory: LogDirectory, result: LoadedDirectory) -> list[str]:
        """The names of the folders that hold a log."""
        found = []
        for name in self._context.disk.list(directory.path):
            path = f"{directory.path}/{name}"
            if not self._context.disk.is_directory(path):
                continue
            if is_being_deleted(name):
                result.to_delete.append(path)
            elif is_kept_aside(name) or parse_folder_name(name) is None:
                logger.warning("%s is no partition's folder and is left alone", path)
            else:
                found.append(name)
        return found

    async def _load(
        self,
        directory: LogDirectory,
        folder: LogFolder,
        checkpoint: LogCheckpoint,
        result: LoadedDirectory,
    ) -> None:
        async with self._limit:
            try:
                if directory.was_in_doubt:
                    await self._offload.run(
                        directory.watched, rewrite_unflushed, folder, checkpoint.recovery_point
                    )
                log = await self._offload.run(
                    directory.watched, Log, self._context, folder, checkpoint
                )
            except UnusableLog as error:
                logger.error("%s cannot be used: %s", folder.topic_partition, error)
                result.unusable[folder.topic_partition] = str(error)
                return
        result.logs.append(log)
        if not log.epoch_file.is_durable:
            self._context.host.epochs_changed(log)
        logger.info(
            "%s: offsets %d to %d, high watermark %d",
            folder.topic_partition,
            log.log_start_offset,
            log.log_end_offset,
            log.high_watermark,
        )

"""Closes the logs of the data directories, at a clean shutdown."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas_common.runtime import Offload
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.manager.log_directory import LogDirectory
from barnabas_broker.log.manager.run_limited import run_limited
from barnabas_broker.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

HighWatermarks = Callable[[LogDirectory], Mapping[TopicPartition, int]]


async def close_all(
    directories: Iterable[tuple[LogDirectory, Sequence[UnifiedLog]]],
    high_watermarks: HighWatermarks,
    threads: int,
    offload: Offload,
) -> None:
    """Close each directory with its logs; errors are logged."""
    for directory, logs in directories:
        try:
            await _close_directory(directory, logs, high_watermarks, threads, offload)
        except OSError as error:
            logger.error("data directory %s not shut down cleanly: %s", directory.path, error)


async def _close_directory(
    directory: LogDirectory,
    logs: Sequence[UnifiedLog],
    high_watermarks: HighWatermarks,
    threads: int,
    offload: Offload,
) -> None:
    """Flush and close the logs, write the checkpoints, and mark the directory clean.

    Raises OSError; the directory is not marked clean then.
    """

    async def close(log: UnifiedLog) -> None:
        await offload.run(directory.watched, _flush_and_close, log)

    await run_limited(close, logs, threads)
    # Not before: until the logs are closed, an epoch file may hold one of them back.
    ends = high_watermarks(directory)
    await offload.run(directory.watched, _leave_clean, directory, logs, ends)


def _flush_and_close(log: UnifiedLog) -> None:
    log.flush()
    log.close()


def _leave_clean(
    directory: LogDirectory,
    logs: Sequence[UnifiedLog],
    high_watermarks: Mapping[TopicPartition, int],
) -> None:
    directory.checkpoints.write_all(logs, high_watermarks)
    if directory.loaded:
        directory.mark_clean_shutdown()

"""Closes the logs of one data directory, at a clean shutdown."""

from collections.abc import Mapping, Sequence

from barnabas_common.runtime import Offload
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, keys
from barnabas_broker.log.manager.log_directory import LogDirectory
from barnabas_broker.log.manager.run_limited import run_limited
from barnabas_broker.log.unified_log import UnifiedLog


async def close_directory(
    directory: LogDirectory,
    logs: Sequence[UnifiedLog],
    high_watermarks: Mapping[TopicPartition, int],
    config: Config,
    offload: Offload,
) -> None:
    """Flush and close the logs, write the checkpoints, and mark the directory clean.

    Raises OSError; the directory is not marked clean then.
    """

    async def close(log: UnifiedLog) -> None:
        await offload.run(directory.watched, _flush_and_close, log)

    await run_limited(close, logs, config[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR])
    await offload.run(directory.watched, _leave_clean, directory, logs, high_watermarks)


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

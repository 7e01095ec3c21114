"""The files of unfinished deletions and writes in a log's folder. I/O errors are OSError."""

import logging

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.epochs.leader_epoch_cache import LeaderEpochCache
from barnabas_broker.log.epochs.leader_epoch_file import LeaderEpochFile
from barnabas_broker.log.index import offset_index, time_index, transaction_index
from barnabas_broker.log.segment.segment_files import DELETED_SUFFIX, LOG_SUFFIX

logger = logging.getLogger(__name__)

_INDEX_SUFFIXES = (offset_index.SUFFIX, time_index.SUFFIX, transaction_index.SUFFIX)


def clear_leftovers(disk: Disk, directory: str, name: TopicPartition) -> None:
    """Remove what unfinished writes left, and indexes without a log."""
    files = disk.list(directory)
    bases = {one.removesuffix(LOG_SUFFIX) for one in files if one.endswith(LOG_SUFFIX)}
    for one in files:
        orphan = any(
            one.endswith(suffix) and one.removesuffix(suffix) not in bases
            for suffix in _INDEX_SUFFIXES
        )
        if orphan or one.endswith((".tmp", ".staged")):
            logger.info("%s: removing %s", name, one)
            disk.remove(f"{directory}/{one}")


def finish_deletions(disk: Disk, directory: str, epochs: LeaderEpochCache) -> None:
    """Remove deleted segments, once the epoch file shows that the log begins behind them."""
    deleted = [one for one in disk.list(directory) if one.endswith(DELETED_SUFFIX)]
    if deleted and epochs.version:
        LeaderEpochFile(disk, directory, epochs).write()
    for one in deleted:
        logger.info("removing %s/%s", directory, one)
        disk.remove(f"{directory}/{one}")

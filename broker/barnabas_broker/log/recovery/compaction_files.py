"""What a crash in the middle of a compaction left in a log's folder, settled before it is opened.

A `.cleaned` segment is unfinished, and the old ones are there: it is removed. A `.swap` segment is
whole and durable, and some of the segments that it replaces may have gone: they are removed and it
takes their place. Kafka's names and rules (`LogLoader.removeTempFilesAndCollectSwapFiles`).
"""

import logging
from contextlib import closing

from barnabas_common.record.batch import CorruptBatch
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.index import offset_index, time_index, transaction_index
from barnabas_broker.log.segment.batch_scan import verified_batches
from barnabas_broker.log.segment.segment_files import CLEANED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX

logger = logging.getLogger(__name__)

_FILES = (LOG_SUFFIX, offset_index.SUFFIX, time_index.SUFFIX, transaction_index.SUFFIX)


def settle_compaction(disk: Disk, directory: str, name: TopicPartition) -> bool:
    """Remove or complete what was left; whether there was anything. Raises OSError."""
    names = disk.list(directory)
    left = [one for one in names if one.endswith((CLEANED_SUFFIX, SWAP_SUFFIX))]
    if not left:
        return False
    unfinished = [_base(one) for one in left if one.endswith(CLEANED_SUFFIX)]
    for one in left:
        # The names change from `.cleaned` to `.swap` one after the other: while one of a segment's
        # files is `.cleaned`, no old segment has been touched for it.
        if one.endswith(CLEANED_SUFFIX) or (unfinished and _base(one) >= min(unfinished)):
            logger.info("%s: removing %s, an unfinished compaction", name, one)
            disk.remove(f"{directory}/{one}")
    for one in disk.list(directory):
        if one.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            _make_room(disk, directory, name, _base(one))
    for one in disk.list(directory):
        if one.endswith(SWAP_SUFFIX):
            path = f"{directory}/{one}"
            disk.rename(path, path.removesuffix(SWAP_SUFFIX), sync=False)
    disk.sync_directory(directory)
    return True


def _base(name: str) -> int:
    stem = name.partition(".")[0]
    return int(stem) if stem.isdigit() else 0


def _make_room(disk: Disk, directory: str, name: TopicPartition, base_offset: int) -> None:
    """Remove the segments that a `.swap` segment replaces; or it, if it is damaged."""
    path = f"{directory}/{base_offset:020d}"
    end, fault = base_offset, ""
    with closing(disk.open(path + LOG_SUFFIX + SWAP_SUFFIX)) as file:
        try:
            for _, header in verified_batches(file, base_offset):
                end = header.next_offset
        except CorruptBatch as error:
            fault = str(error)
    if fault and disk.exists(path + LOG_SUFFIX):
        logger.error(
            "%s: %020d.log.swap is damaged (%s); the segments that it was to replace are used",
            name,
            base_offset,
            fault,
        )
        for suffix in _FILES:
            disk.remove(path + suffix + SWAP_SUFFIX)
        return
    if fault:  # the old segments are gone; loading the log judges what is left
        logger.error("%s: %020d.log.swap is damaged: %s", name, base_offset, fault)
    else:
        logger.info("%s: completing the compaction of segment %d", name, base_offset)
    for one in disk.list(directory):
        if one.endswith(LOG_SUFFIX) and (
            _base(one) == base_offset or base_offset <= _base(one) < end
        ):
            for suffix in _FILES:
                disk.remove(f"{directory}/{one.removesuffix(LOG_SUFFIX)}{suffix}")

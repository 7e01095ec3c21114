"""After a flush that failed: the unflushed part of a log is written once more.

What the page cache still shows of it counts as clean, so no fsync would ever write it, and a power
cut would take it from under a recovery point that has passed it. A copy is dirty, and its fsync
tells the truth. Where the cache has let go of a page the copy holds what the disk has instead, and
the recovery that follows finds it by its checksum. Runs off the loop; I/O errors are OSError.
"""

import logging

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.log_loader import LogFolder, first_to_recover, segment_bases
from barnabas_broker.log.segment import LOG_SUFFIX

logger = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 20


def rewrite_unflushed(folder: LogFolder, recovery_point: int) -> None:
    """Make durable what can be read above the recovery point, before the log is opened.

    Indexes need no such care: above the recovery point they are made anew from the log.
    """
    bases = segment_bases(folder)
    for base in bases[first_to_recover(bases, recovery_point) :]:
        _rewrite(folder.disk, f"{folder.path}/{base:020d}{LOG_SUFFIX}")
    folder.disk.sync_directory(folder.path)


def _rewrite(disk: Disk, path: str) -> None:
    logger.info("writing %s anew", path)
    copy = path + ".tmp"
    disk.remove(copy)
    source, target = disk.open(path), disk.open(copy, create=True)
    try:
        while piece := source.read(target.size(), _PIECE_BYTES):
            target.append([piece])
        target.flush()
    finally:
        source.close()
        target.close()
    disk.rename(copy, path, sync=False)

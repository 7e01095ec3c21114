"""After a failed flush, the unflushed part of a log is written again.

Its pages in the page cache count as clean, so no fsync would write them, and a power loss would
remove them below a recovery point that has passed them. A copy is dirty, and its fsync is reliable.
If the cache has dropped a page, the copy has the old data of the disk, and the following recovery
detects that by the checksum. Runs off the event loop; I/O errors are OSError.
"""

import logging
from contextlib import closing

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.recovery.log_checkpoint import LogFolder
from barnabas_broker.log.recovery.log_loader import first_to_recover, segment_bases
from barnabas_broker.log.segment.segment_files import LOG_SUFFIX

logger = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 20


def rewrite_unflushed(folder: LogFolder, recovery_point: int) -> None:
    """Make the readable data above the recovery point durable, before the log is opened.

    Indexes above the recovery point are rebuilt from the log.
    """
    bases = segment_bases(folder)
    for base in bases[first_to_recover(bases, recovery_point) :]:
        _rewrite(folder.disk, f"{folder.path}/{base:020d}{LOG_SUFFIX}")
    folder.disk.sync_directory(folder.path)


def _rewrite(disk: Disk, path: str) -> None:
    logger.info("rewriting %s", path)
    copy = path + ".tmp"
    disk.remove(copy)
    with closing(disk.open(path)) as source, closing(disk.open(copy, create=True)) as target:
        while piece := source.read(target.size(), _PIECE_BYTES):
            target.append([piece])
        target.flush()
    disk.rename(copy, path, sync=False)

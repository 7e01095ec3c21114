"""The log of a partition that has none here yet, or whose damaged log is replaced.

What is removed here can be fetched again: the replica is not in the ISR, and another one leads.
Runs off the event loop. I/O errors are OSError.
"""

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.checkpoint import partition_metadata
from barnabas_broker.log.errors import UnknownTopicIdError
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint, LogFolder
from barnabas_broker.log.unified_log import UnifiedLog


def make_log(context: LogContext, folder: LogFolder) -> UnifiedLog:
    """Open a log without checkpoints; an empty one if there is none, or if its topic is unknown."""
    folder.disk.make_directory(folder.path)
    try:
        return UnifiedLog(context, folder, LogCheckpoint())
    except UnknownTopicIdError as error:
        _clear(folder.disk, folder.path)
        log = UnifiedLog(context, folder, LogCheckpoint())
        log.cut_at_start = f"{error}; all of it was removed"
        return log


def _clear(disk: Disk, path: str) -> None:
    """Remove every file durably. The malformed one goes last: with it a start finds the same fault,
    without it what is left would be taken for records of the present topic."""
    files = [name for name in disk.list(path) if not disk.is_directory(f"{path}/{name}")]
    for name in files:
        if name != partition_metadata.NAME:
            disk.remove(f"{path}/{name}")
    disk.sync_directory(path)
    disk.remove(f"{path}/{partition_metadata.NAME}")
    disk.sync_directory(path)

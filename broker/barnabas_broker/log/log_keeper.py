"""The slow work of all logs: what they ask of their host is done here in the background.

fsync, rename and deletion run off the event loop; each task holds nothing but its log, and looks
again at the log's state when it is back in the loop's turn. Made and stopped by the log manager.
"""

import asyncio
import logging
import posixpath
from collections.abc import Callable, Sequence

from barnabas.runtime import Runtime, TaskScope

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.log import Log
from barnabas_broker.log.log_context import LogHost
from barnabas_broker.log.log_directory import LogDirectory
from barnabas_broker.log.segment import Segment

logger = logging.getLogger(__name__)

OnFailure = Callable[[LogDirectory, OSError], None]


class LogKeeper(LogHost):
    """The host of every log of a broker. After `close` it does what is asked at once."""

    def __init__(
        self,
        runtime: Runtime,
        disk: Disk,
        directories: Sequence[LogDirectory],
        on_failure: OnFailure,
    ) -> None:
        self._offload = runtime.offload
        self._disk = disk
        self._directories = {directory.path: directory for directory in directories}
        self._on_failure = on_failure
        self._tasks = TaskScope("log keeper")
        self._is_closed = False
        self._saving_epochs: dict[Log, None] = {}

    async def close(self) -> None:
        """End the background work; what it has not done is done by the closing of the logs."""
        self._is_closed = True
        await self._tasks.close()

    # ---- LogHost

    def log_failed(self, log: Log, error: OSError) -> None:
        self._on_failure(self._directory_of(log), error)

    def rolled(self, log: Log) -> None:
        if not self._is_closed:
            self._tasks.spawn(self.flush(log, log.active_segment_offset), f"flush {log}")

    def epochs_changed(self, log: Log) -> None:
        if self._is_closed:
            super().epochs_changed(log)
        elif log not in self._saving_epochs:
            self._saving_epochs[log] = None
            self._tasks.spawn(self._save_epochs(log), f"epochs of {log}")

    def before_truncation(self, log: Log, end_offset: int) -> None:
        self._directory_of(log).lower_checkpoints(log.topic_partition, end_offset)

    def discard(self, log: Log, segments: Sequence[Segment]) -> None:
        if self._is_closed:
            super().discard(log, segments)
        elif segments:
            self._tasks.spawn(self._discard(log, segments), f"deletion in {log}")

    # ---- the work

    async def flush(self, log: Log, up_to: int | None = None) -> None:
        """Make a log durable below `up_to`, or whole, and raise its recovery point."""
        if log.is_failed:
            return
        plan = log.plan_flush(up_to)
        try:
            await log.epoch_file.write_in_background(self._offload)
            await self._offload.run(self._directory_of(log).watched, plan.run)
        except OSError as error:
            if not any(segment.is_deleted for segment, _ in plan.segments):
                self._failed(log, error, "flush")
            return
        if not log.is_failed:
            log.complete_flush(plan)

    async def _save_epochs(self, log: Log) -> None:
        try:
            await log.epoch_file.write_in_background(self._offload)
        except OSError as error:
            self._failed(log, error, "write the epochs")
        finally:
            self._saving_epochs.pop(log, None)

    async def _discard(self, log: Log, segments: Sequence[Segment]) -> None:
        """Rename at once, so that a restart finds no old segments; remove later, as readers of
        the files (backups, tools) may be at them."""
        try:
            await self._offload.run(self._mark_deleted, log, segments)
            await asyncio.sleep(log.config.file_delete_delay_ms / 1000)
            await self._offload.run(_destroy, segments)
        except OSError as error:
            self._failed(log, error, "delete segments")

    def _mark_deleted(self, log: Log, segments: Sequence[Segment]) -> None:
        for segment in segments:
            segment.mark_deleted()
        self._disk.sync_directory(log.directory)

    async def remove_folder(self, path: str, delay_ms: int) -> None:
        """Delete a partition's folder that was renamed to be deleted."""
        await asyncio.sleep(delay_ms / 1000)
        try:
            await self._offload.run(self._disk.remove_tree, path)
            logger.info("removed %s", path)
        except OSError as error:  # it is tried again at the next start
            logger.error("could not remove %s: %s", path, error)

    def remove_folder_later(self, path: str, delay_ms: int) -> None:
        """`remove_folder`, in the background."""
        if not self._is_closed:
            self._tasks.spawn(self.remove_folder(path, delay_ms), f"removal of {path}")

    def _failed(self, log: Log, error: OSError, what: str) -> None:
        """A log that was closed or deleted meanwhile has lost its files, and that is no failure."""
        if not log.is_failed:
            logger.error("%s: could not %s: %s", log.topic_partition, what, error)
            self._on_failure(self._directory_of(log), error)

    def _directory_of(self, log: Log) -> LogDirectory:
        return self._directories[posixpath.dirname(log.directory)]


def _destroy(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.destroy()

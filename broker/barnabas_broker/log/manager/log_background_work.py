"""The slow work of all logs, in the background: flushes, epoch files, deletion of segments.

fsync, rename and deletion run off the event loop; each task looks at its log's state again when it
is back on the loop. Created and stopped by the log manager.
"""

import asyncio
import logging
import posixpath
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from barnabas_common.runtime import Runtime, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk, is_out_of_descriptors
from barnabas_broker.log.log_context import HostedLog, LogHost
from barnabas_broker.log.manager.descriptor_shortage import RETRY_SECONDS
from barnabas_broker.log.manager.log_directory import LogDirectory
from barnabas_broker.log.manager.log_folders import rename_folder
from barnabas_broker.log.producers.producer_state_manager import PendingSnapshot
from barnabas_broker.log.segment.segment import Segment

logger = logging.getLogger(__name__)

OnFailure = Callable[[LogDirectory, OSError], None]


@dataclass(eq=False)
class _Deletion:
    """Segments that a log no longer has."""

    log: HostedLog
    segments: Sequence[Segment]


class LogBackgroundWork(LogHost):
    """The host of every log of a broker. After `close` it works immediately."""

    def __init__(
        self,
        runtime: Runtime,
        disk: Disk,
        directories: Sequence[LogDirectory],
        on_failure: OnFailure,
    ) -> None:
        self._offload = runtime.offload
        self._randomness = runtime.randomness
        self._disk = disk
        self._directories = {directory.path: directory for directory in directories}
        self._on_failure = on_failure
        self._tasks = TaskScope("log keeper")
        self._is_closed = False
        self._saving_epochs: dict[HostedLog, None] = {}
        # The deletions whose segments have not got their new names yet, durably.
        self._unmarked: dict[_Deletion, None] = {}
        self._names_of_deleted = asyncio.Event()

    async def close(self) -> None:
        """Stop the background work; closing the logs does the rest."""
        self._is_closed = True
        await self._tasks.close()
        for deletion in self._unmarked:
            with suppress(OSError):  # the next start finds segments that retention deletes again
                self._mark_deleted(deletion.log, deletion.segments)
        self._unmarked.clear()

    # ---- LogHost

    def log_failed(self, log: HostedLog, error: OSError) -> None:
        self._on_failure(self._directory_of(log), error)

    def out_of_descriptors(self, log: HostedLog, error: OSError) -> None:
        self._on_failure(self._directory_of(log), error)

    def rolled(self, log: HostedLog) -> None:
        if not self._is_closed:
            self._tasks.spawn(self.flush(log, log.active_segment_offset), f"flush {log}")
            for snapshot in log.producers.take_pending():
                self._tasks.spawn(self._write_snapshot(log, snapshot), f"producers of {log}")

    def epochs_changed(self, log: HostedLog) -> None:
        if self._is_closed:
            super().epochs_changed(log)
        elif log not in self._saving_epochs:
            self._saving_epochs[log] = None
            self._tasks.spawn(self._save_epochs(log), f"epochs of {log}")

    def before_truncation(self, log: HostedLog, end_offset: int) -> None:
        self._directory_of(log).checkpoints.lower(log.topic_partition, end_offset)

    def before_first_append(self, log: HostedLog) -> None:
        self._directory_of(log).checkpoints.before_first_append(log.topic_partition)

    def discard(self, log: HostedLog, segments: Sequence[Segment]) -> None:
        if self._is_closed:
            super().discard(log, segments)
        elif segments:
            deletion = _Deletion(log, segments)
            self._unmarked[deletion] = None
            self._tasks.spawn(self._discard(deletion), f"deletion in {log}")

    def is_discarding(self, log: HostedLog, end_offset: int) -> bool:
        return any(
            deletion.log is log and deletion.segments[0].base_offset < end_offset
            for deletion in self._unmarked
        )

    # ---- the work

    async def flush(self, log: HostedLog, up_to: int | None = None) -> None:
        """Make a log durable below `up_to`, or all of it, and raise its recovery point.

        Repeated while no file descriptor is left.
        """
        while not log.is_failed:
            plan = log.plan_flush(up_to)
            try:
                await log.epoch_file.write_in_background(self._offload)
                await self._offload.run(self._directory_of(log).watched, plan.run)
                while self.is_discarding(log, plan.end_offset) and not self._is_closed:
                    await self._names_of_deleted.wait()
            except OSError as error:
                if any(segment.is_deleted for segment, _ in plan.segments):
                    continue  # retention or compaction took a segment away in the meantime
                self._failed(log, error, "flush")
                if not is_out_of_descriptors(error):
                    return
                await asyncio.sleep(RETRY_SECONDS)
            else:
                if not log.is_failed:
                    log.complete_flush(plan)
                return

    async def _write_snapshot(self, log: HostedLog, snapshot: PendingSnapshot) -> None:
        """The file gets its name on the event loop, where no truncation can come between."""
        try:
            write = log.producers.write_aside
            await self._offload.run(self._directory_of(log).watched, write, snapshot)
            if not log.is_failed:
                log.producers.put_in_place(snapshot)
        except OSError as error:
            log.producers.give_up(snapshot)
            self._failed(log, error, "write a snapshot of the producers")

    async def _save_epochs(self, log: HostedLog) -> None:
        try:
            await self._when_possible(lambda: log.epoch_file.write_in_background(self._offload))
        except OSError as error:
            self._failed(log, error, "write the epochs")
        finally:
            self._saving_epochs.pop(log, None)

    async def _discard(self, deletion: _Deletion) -> None:
        """Rename now, so that a restart finds no old segments; remove later, since backups and
        tools may be reading the files.

        The epoch file is written first: a start takes the first segments for lost that are neither
        there nor left out of it.
        """
        log, segments, offload = deletion.log, deletion.segments, self._offload
        try:
            try:
                await self._when_possible(lambda: offload.run(self._mark_deleted, log, segments))
            except OSError:
                self._marked(deletion)
                raise
            self._marked(deletion)
            await asyncio.sleep(log.config.file_delete_delay_ms / 1000)
            if log.is_failed:  # the next start removes the files
                return _close(segments)
            await self._when_possible(lambda: log.epoch_file.write_in_background(offload))
            await offload.run(_destroy, segments)
        except OSError as error:
            self._failed(log, error, "delete segments")

    def _marked(self, deletion: _Deletion) -> None:
        """The segments have their new names, or cannot get them. Wake those that wait for it."""
        del self._unmarked[deletion]
        self._names_of_deleted.set()
        self._names_of_deleted = asyncio.Event()

    def _mark_deleted(self, log: HostedLog, segments: Sequence[Segment]) -> None:
        for segment in segments:
            segment.mark_deleted()
        self._disk.sync_directory(log.directory)

    async def rename_folder(
        self, directory: LogDirectory, name: TopicPartition, suffix: str
    ) -> str:
        """Rename a log's folder, see `log_folders`, and return the new path. Raises OSError."""
        unique = self._randomness.randbytes(16).hex()
        return await self._offload.run(
            rename_folder, self._disk, directory.path, name, unique, suffix
        )

    def remove_folder_later(self, path: str, delay_ms: int) -> None:
        """Delete a partition's folder that was renamed for deletion, in the background."""
        if not self._is_closed:
            self._tasks.spawn(self._remove_folder(path, delay_ms), f"removal of {path}")

    async def _remove_folder(self, path: str, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)
        try:
            await self._when_possible(lambda: self._offload.run(self._disk.remove_tree, path))
            logger.info("removed %s", path)
        except OSError as error:  # the next start tries again
            logger.error("could not remove %s: %s", path, error)

    async def _when_possible(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work, repeatedly while no file descriptor is left. Raises OSError."""
        while True:
            try:
                return await work()
            except OSError as error:
                if not is_out_of_descriptors(error):
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    def _failed(self, log: HostedLog, error: OSError, what: str) -> None:
        """An error of a log that was closed or deleted in the meantime is not a failure."""
        if log.is_failed:
            return
        if not is_out_of_descriptors(error):
            logger.error("%s: could not %s: %s", log.topic_partition, what, error)
        self._on_failure(self._directory_of(log), error)

    def _directory_of(self, log: HostedLog) -> LogDirectory:
        return self._directories[posixpath.dirname(log.directory)]


def _destroy(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.destroy()


def _close(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.close()

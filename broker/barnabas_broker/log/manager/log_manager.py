"""All logs of a broker, in one or more data directories.

The log manager locks and checks the directories, loads, creates and deletes logs, writes the
checkpoints and applies retention. The broker calls `lock_directories`, `check_identity` and `start`
before it joins the cluster, and `stop` and `unlock_directories` at the end.

After an I/O error a directory is no longer used, nor are its logs; the others are.
"""

import asyncio
import contextlib
import logging
import posixpath
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from barnabas_common.errors import InconsistentTopicIdError, KafkaStorageError
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, LogConfig, keys
from barnabas_broker.disk.disk import Disk, FlushFailed, is_out_of_descriptors
from barnabas_broker.log.errors import OutOfDescriptorsError, UnusableLog
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.manager.descriptor_shortage import DescriptorShortage
from barnabas_broker.log.manager.directory_closer import close_all
from barnabas_broker.log.manager.directory_loader import load_directory
from barnabas_broker.log.manager.log_background_work import LogBackgroundWork
from barnabas_broker.log.manager.log_cleaner import LogCleaner, OnCompaction
from barnabas_broker.log.manager.log_directory import (
    LogDirectory,
    check_any_live,
    check_identities,
    lock_all,
    missing_directories,
    with_folder,
)
from barnabas_broker.log.manager.log_folders import DELETE_SUFFIX, STRAY_SUFFIX, deleted_log
from barnabas_broker.log.manager.new_log import make_log
from barnabas_broker.log.manager.offline_logs import OfflineLogs
from barnabas_broker.log.manager.periodic_log_tasks import PeriodicLogTasks
from barnabas_broker.log.recovery.log_checkpoint import LogFolder
from barnabas_broker.log.recovery.log_history import LogHistory, history_of_all
from barnabas_broker.log.recovery.lost_logs import LostLog, LostLogs
from barnabas_broker.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

OnDirectoryFailure = Callable[[str, OSError], None]
OnDescriptors = Callable[[OSError | None], None]


class LogManager:
    """`on_directory_failure(path, error)` is called once for each directory that fails.

    `on_descriptors` is called with an error when no file descriptor is left, which fails no
    directory, and with None when there are some again. `on_compaction` is called after each pass.

    Set by `start`: `had_clean_shutdown`, whether the previous process closed all logs, and `lost`.
    """

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        disk: Disk,
        on_directory_failure: OnDirectoryFailure = lambda *_: None,
        on_descriptors: OnDescriptors = lambda _: None,
        on_compaction: OnCompaction = lambda _: None,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._disk = disk
        self._on_directory_failure = on_directory_failure
        self.directories = [
            LogDirectory(disk, path.rstrip("/") or "/") for path in config.log_directories
        ]
        self._background = LogBackgroundWork(runtime, disk, self.directories, self.directory_failed)
        self._periodic = PeriodicLogTasks(config, runtime.clock, self._background, self)
        self._shortage = DescriptorShortage(
            runtime.offload,
            disk,
            lambda: (self._live_log_dirs() or self.directories)[0].lock_path,
            self._periodic.catch_up,
            on_descriptors,
        )
        self._context = LogContext(disk, runtime.clock, runtime.randomness, self._background)
        self.cleaner = LogCleaner(config, runtime, disk, self, on_compaction)
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._home: dict[TopicPartition, LogDirectory] = {}
        self._offline = OfflineLogs()
        self._configured: set[TopicPartition] = set()
        self._changing = asyncio.Lock()
        self.had_clean_shutdown = True
        self.lost = LostLogs()
        self._misses_batches = False

    # ---- the directories

    def lock_directories(self) -> None:
        """Lock every directory for this process.

        Raises:
            DirectoryLockedError: another process has one of them.
            OSError: none of them can be used.
        """
        lock_all(self.directories)
        check_any_live(self.directories)

    def unlock_directories(self) -> None:
        for directory in self.directories:
            directory.unlock()

    def check_identity(self, cluster_id: str) -> None:
        """Compare each directory's `meta.properties` with this cluster and broker, or write it.

        Raises InconsistentDirectoryError if one belongs to another, OSError if all have failed.
        """
        check_identities(self._live_log_dirs(), cluster_id, self._config[keys.BROKER_ID])
        check_any_live(self.directories)

    def history(self) -> LogHistory:
        """Since when nothing was lost here; known after `start`.

        A broker with a lost or damaged log, or with fewer directories than before, counts as new.
        Raises OSError if no directory can be used: nothing is known then of what was lost.
        """
        check_any_live(self.directories)
        if self.lost or self._misses_batches or missing_directories(self.directories):
            return LogHistory(None, is_new=True)
        return history_of_all([directory.history for directory in self._live_log_dirs()])

    async def write_stamp(self, stamp: int) -> None:
        """Write the number into every directory; one that fails is out of use.

        Raises OSError if no file descriptor is left, perhaps after some directories were written.
        """
        await self._in_each_directory(lambda directory: directory.write_stamp(stamp))

    async def write_history(self, unbroken_since: int) -> None:
        """Record for the next start that nothing was lost since that broker epoch.

        Raises OSError if no file descriptor is left: the previous process's record would remain.
        """
        count = len(self.directories)
        await self._in_each_directory(lambda one: one.write_history(unbroken_since, count))

    async def _in_each_directory(self, write: Callable[[LogDirectory], None]) -> None:
        for directory in self._live_log_dirs():
            try:
                await self._runtime.offload.run(write, directory)
            except OSError as error:
                if is_out_of_descriptors(error):
                    raise
                self.directory_failed(directory, error)

    def damaged_checkpoints(self) -> dict[str, str]:
        """The files that could not be used at the start, and what is wrong with them."""
        return {p: fault for d in self.directories for p, fault in d.checkpoints.damaged.items()}

    @property
    def log_dirs_with_failed_flush(self) -> list[str]:
        """The paths of the directories in which a flush failed before the start."""
        return [directory.path for directory in self.directories if directory.had_failed_flush]

    def live_log_dirs(self) -> list[str]:
        """The paths of the directories that have not failed."""
        return [directory.path for directory in self._live_log_dirs()]

    def _live_log_dirs(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is None]

    # ---- start and stop

    async def start(self) -> None:
        """Load every log, with recovery after an unclean shutdown; start the periodic tasks.

        Raises:
            UnusableLog: a partition lies in two directories.
            OSError: there are not enough file descriptors for the logs.
        """
        named, leaving = {}, dict[LogDirectory, list[str]]()
        for directory in self._live_log_dirs():
            try:
                loaded = await load_directory(
                    directory, self._config, self._runtime.offload, self._context
                )
            except OSError as error:
                if is_out_of_descriptors(error):
                    raise
                self.directory_failed(directory, error)
                continue
            directory.loaded = True
            self.had_clean_shutdown = self.had_clean_shutdown and loaded.had_clean_shutdown
            for log in loaded.logs:
                self._add(log, directory)
                self._misses_batches |= log.misses_batches
            for name, damaged in loaded.damaged.items():
                self.lost.add_damaged(name, damaged)
            named[directory.path] = loaded.named
            if loaded.to_delete:
                leaving[directory] = loaded.to_delete
        in_deletion = {deleted_log(posixpath.basename(f)) for fs in leaving.values() for f in fs}
        present = self._logs.keys() | in_deletion
        for path, names in named.items():
            self.lost.look_for(path, names, present)
        for directory, folders in leaving.items():
            await self._end_deletions(directory, folders)
        self._periodic.start()
        self.cleaner.start()

    async def _end_deletions(self, directory: LogDirectory, folders: Sequence[str]) -> None:
        """Update the checkpoints first: otherwise the next start counts these logs as lost."""
        await self._write_checkpoints(directory)
        for folder in folders:
            self._background.remove_folder_later(folder, delay_ms=0)

    def _add(self, log: UnifiedLog, directory: LogDirectory) -> None:
        name = log.topic_partition
        if name in self._home:
            both = f"{self._home[name].path} and {directory.path}"
            raise UnusableLog(f"{name} lies in both {both}; remove the one that is out of date")
        self._logs[name] = log
        self._home[name] = directory
        if not log.epoch_file.is_durable:  # its epochs are from the batches
            self._background.epochs_changed(log)

    async def stop(self) -> None:
        """Flush and close every log, write all checkpoints, and mark the directories clean."""
        await self._shortage.close()
        await self._periodic.close()
        await self.cleaner.close()
        await self._background.close()
        logs = [(directory, self._logs_in(directory)) for directory in self._live_log_dirs()]
        threads = self._config[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR]
        await close_all(logs, self._high_watermarks, threads, self._runtime.offload)
        for log in self._logs.values():
            if not log.is_failed:
                with contextlib.suppress(OSError):  # reported above
                    log.close()

    # ---- the logs

    def get(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        return self._logs.get(topic_partition)

    def logs(self) -> list[UnifiedLog]:
        """The logs that can be used, in the order they were opened."""
        return list(self._logs.values())

    def configured_logs(self) -> list[UnifiedLog]:
        """The logs whose topics' settings are known: retention by defaults may delete too much."""
        return [log for name, log in self._logs.items() if name in self._configured]

    def configured_topics(self) -> list[str]:
        """The names of their topics."""
        return sorted({name.topic for name in self._configured})

    def offline_logs(self) -> dict[TopicPartition, str]:
        """The logs that exist here and cannot be used, and why."""
        return self._offline.reasons()

    async def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: str | None,
        config: LogConfig,
        is_new: bool,
        is_first: bool = False,
        in_sync: bool = False,
        has_leader: bool = True,
    ) -> UnifiedLog:
        """Return the log with these settings. `is_new`: the replica is new, so that it need not
        have a log; `is_first`: so are the others; `in_sync`: it is in the ISR; `has_leader`: what
        is removed can be fetched again.

        Raises:
            LostLogError: it is lost or damaged, and in the ISR: a log that holds less must not
                replace it. Or it is damaged, and there is no leader to fetch the rest from.
            KafkaStorageError: it is, or may be, in a directory that has failed.
            InconsistentTopicIdError: it belongs to another topic, and must not be set aside.
        """
        async with self._changing:
            log = self._logs.get(topic_partition)
            is_stray = self.note_stray(topic_partition, topic_id)
            if not is_new and (log is None or is_stray):
                self.lost.check_may_be_replaced(topic_partition, in_sync, has_leader)
            if log is not None and is_stray:
                await self._take_away(log, "of another topic", STRAY_SUFFIX)
            if log is None or is_stray:
                log = await self._create(topic_partition, config, is_first)
                self.lost.forget(topic_partition)
            if topic_id and log.topic_id and topic_id != log.topic_id:
                raise InconsistentTopicIdError(
                    f"{topic_partition}: the log here is of topic id {log.topic_id}, not {topic_id}"
                )
            if topic_id and not log.topic_id:
                with self._io(self._home[topic_partition], topic_partition):
                    await self._runtime.offload.run(log.set_topic_id, topic_id)
            log.config = config
            self._configured.add(topic_partition)
            self._periodic.settings_changed()
            return log

    def configure(self, topic: str | None, config_of: Callable[[str], LogConfig]) -> None:
        """Change the settings of the logs of a topic, or of all topics for None.

        Logs whose topic's settings are not known yet are left out: see `configured_logs`.
        """
        for name in self._configured:
            if topic in (None, name.topic) and name in self._logs:
                self._logs[name].config = config_of(name.topic)
        self._periodic.settings_changed()

    async def _create(self, name: TopicPartition, config: LogConfig, is_first: bool) -> UnifiedLog:
        self._offline.check_absent(name, self.directories, is_first)
        if self._shortage.lasts:  # a checkpoint may still name a deleted log of this name
            raise OutOfDescriptorsError(f"{name}: no file descriptors are left")
        live = sorted(self._live_log_dirs(), key=lambda d: len(self._logs_in(d)))
        directory = with_folder(name, live) or live[0]
        folder = LogFolder(self._disk, f"{directory.path}/{name}", name, config)
        with self._io(directory, name):
            directory.checkpoints.begin(name)
            log = await self._runtime.offload.run(make_log, self._context, folder)
        self._add(log, directory)
        logger.info("%s: log created in %s", name, directory.path)
        return log

    async def delete(self, topic_partition: TopicPartition) -> None:
        """Remove a log and rename its folder; the files are removed after a delay.

        Raises KafkaStorageError if it is, or may be, in a directory that has failed.
        """
        async with self._changing:
            log = self._logs.get(topic_partition)
            if log is None:
                self._offline.check_absent(topic_partition, self.directories, is_first=False)
                await self._delete_unopened(topic_partition)
                self.lost.forget(topic_partition)
                return
            renamed = await self._take_away(log, "deleted", DELETE_SUFFIX)
            self._background.remove_folder_later(renamed, log.config.file_delete_delay_ms)

    def note_stray(self, name: TopicPartition, topic_id: str | None) -> bool:
        """Whether the log is of an earlier topic of that name; it counts as lost then. A topic that
        is assigned here since the start is later than one whose log was found then."""
        log = self._logs.get(name) if name not in self._configured and topic_id else None
        if log is None or log.topic_id in (None, topic_id):
            return False
        why = f"the log here is of topic id {log.topic_id}, not {topic_id}"
        self.lost.add_damaged(name, LostLog(self._home[name].path, log.high_watermark, why))
        return True

    def unassign(self, name: TopicPartition) -> None:
        """Let the next role be of any topic of that name, as the first one after a start."""
        self._configured.discard(name)

    async def _take_away(self, log: UnifiedLog, why: str, suffix: str) -> str:
        """Close a log and rename its folder; a later log of that name must not get its offsets."""
        name = log.topic_partition
        directory = self._home.pop(name)
        del self._logs[name]
        self._configured.discard(name)
        log.fail(OSError(why))
        with self._io(directory, name):
            renamed = await self._background.rename_folder(directory, name, suffix)
        log.close()
        await self._write_checkpoints(directory)
        await self.cleaner.forget(name, directory)
        return renamed

    async def _delete_unopened(self, name: TopicPartition) -> None:
        directory = with_folder(name, self._live_log_dirs())
        if directory is not None:
            with self._io(directory, name):
                renamed = await self._background.rename_folder(directory, name, DELETE_SUFFIX)
            self._background.remove_folder_later(renamed, delay_ms=0)

    def _logs_in(self, directory: LogDirectory) -> list[UnifiedLog]:
        return [log for name, log in self._logs.items() if self._home[name] is directory]

    async def flush(self, log: UnifiedLog) -> None:
        """Make a log and its epochs durable; after an error its directory is no longer used."""
        await self._background.flush(log)

    # ---- checkpoints

    async def checkpoint_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint` in every directory."""
        for directory in self._live_log_dirs():
            if directory.loaded:
                await self._write_high_watermarks(directory)

    async def checkpoint_all_offsets(self) -> None:
        """Write the recovery points and log start offsets in every directory."""
        for directory in self._live_log_dirs():
            if directory.loaded:
                await self.checkpoint_offsets(directory)

    async def _write_checkpoints(self, directory: LogDirectory) -> None:
        await self.checkpoint_offsets(directory)
        await self._write_high_watermarks(directory)

    async def checkpoint_offsets(self, directory: LogDirectory) -> None:
        """Write the recovery points and log start offsets of one directory."""
        with self._io(directory):
            logs = partial(self._logs_in, directory)
            lost = partial(self.lost.high_watermarks, directory.path)
            await directory.checkpoints.write_offsets(logs, lost, self._runtime.offload)

    async def _write_high_watermarks(self, directory: LogDirectory) -> None:
        with self._io(directory):
            await directory.checkpoints.write_high_watermarks(
                lambda: self._high_watermarks(directory), self._runtime.offload
            )

    def _high_watermarks(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        """Those of lost logs stay in the checkpoint."""
        own = directory.checkpoints.storable_high_watermarks(self._logs_in(directory))
        return self.lost.high_watermarks(directory.path) | own

    # ---- failure

    @contextlib.contextmanager
    def _io(self, directory: LogDirectory, name: TopicPartition | None = None) -> Iterator[None]:
        """After an I/O error, fail the directory; for the log `name`, raise KafkaStorageError."""
        try:
            yield
        except OSError as error:
            self.directory_failed(directory, error)
            if name is not None:
                self._offline.add(name, directory, error)
                raise KafkaStorageError(f"{name}: {error}") from error

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """Use a directory and its logs no more, unless only a file descriptor was lacking."""
        if directory.failure is not None:
            return
        if is_out_of_descriptors(error):
            self._shortage.met(error)
            return
        directory.failure = error
        if isinstance(error, FlushFailed):
            directory.record_failed_flush()
        for log in self._logs_in(directory):
            log.fail(error)
            del self._logs[log.topic_partition]
            self._offline.add(log.topic_partition, directory, error)
        self._on_directory_failure(directory.path, error)

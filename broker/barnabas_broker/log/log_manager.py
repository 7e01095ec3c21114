"""All logs of a broker, in one or more data directories.

Locks and checks the directories, loads what is in them, creates and deletes logs, keeps their
checkpoints and applies retention. Started by the broker before it joins the cluster, in the order
`lock_directories`, `check_identity`, `start`; `stop` and `unlock_directories` end it.

A directory whose disk fails is put out of use, its logs with it; the others go on.
"""

import asyncio
import contextlib
import logging
import posixpath
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from barnabas.errors import InconsistentTopicIdError, KafkaStorageError
from barnabas.runtime import Runtime
from barnabas.topic_partition import TopicPartition

from barnabas_broker.config import Config, LogConfig, keys
from barnabas_broker.disk.disk import Disk, FlushFailed
from barnabas_broker.log.checkpoint_file import encode_offsets
from barnabas_broker.log.directory_loader import DirectoryLoader
from barnabas_broker.log.errors import LostLogError, UnusableLog
from barnabas_broker.log.log import Log
from barnabas_broker.log.log_context import LogContext
from barnabas_broker.log.log_directory import LogDirectory
from barnabas_broker.log.log_folders import deleted_log, name_for_deletion
from barnabas_broker.log.log_history import LogHistory, history_of_all
from barnabas_broker.log.log_keeper import LogKeeper
from barnabas_broker.log.log_loader import LogCheckpoint, LogFolder
from barnabas_broker.log.log_rounds import LogRounds
from barnabas_broker.log.lost_logs import LostLogs

logger = logging.getLogger(__name__)

OnDirectoryFailure = Callable[[str, OSError], None]


class LogManager:
    """`on_directory_failure(path, error)` is called once for each directory that fails.

    Once started: `left_in_order`, whether the last run had closed all logs, and `lost`.
    """

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        disk: Disk,
        on_directory_failure: OnDirectoryFailure | None = None,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._disk = disk
        self._on_directory_failure = on_directory_failure
        self.directories = [
            LogDirectory(disk, path.rstrip("/") or "/") for path in config.log_directories
        ]
        self._keeper = LogKeeper(runtime, disk, self.directories, self._directory_failed)
        self._context = LogContext(disk, runtime.clock, runtime.randomness, self._keeper)
        self._rounds = LogRounds(config, runtime.clock, self._keeper, self)
        self._logs: dict[TopicPartition, Log] = {}
        self._home: dict[TopicPartition, LogDirectory] = {}
        self._offline: dict[TopicPartition, str] = {}
        self._configured: set[TopicPartition] = set()
        self._changing = asyncio.Lock()
        self.left_in_order = True
        self.lost = LostLogs()

    # ---- before the broker may be sure who it is

    def lock_directories(self) -> None:
        """Take every directory for this process.

        Raises:
            DirectoryLockedError: another process has one of them.
            OSError: not one of them can be used.
        """
        for directory in self.directories:
            try:
                directory.lock()
            except OSError as error:
                logger.error("data directory %s cannot be used: %s", directory.path, error)
                directory.failure = error
        self._check_that_one_lives()

    def _check_that_one_lives(self) -> None:
        failures = [directory.failure for directory in self.directories if directory.failure]
        if len(failures) == len(self.directories):
            raise failures[-1]

    def unlock_directories(self) -> None:
        for directory in self.directories:
            directory.unlock()

    def check_identity(self, cluster_id: str) -> None:
        """Hold each directory's `meta.properties` against this cluster and broker, or write it.

        Raises:
            InconsistentDirectoryError: a directory belongs to another; nothing was written.
        """
        broker_id = self._config[keys.BROKER_ID]
        living = self._living()
        known = [directory.check_identity(cluster_id, broker_id) for directory in living]
        for directory, is_known in zip(living, known, strict=True):
            if not is_known:
                directory.write_identity(cluster_id, broker_id)

    def read_kept_session(self) -> tuple[int, bytes] | None:
        """The ZooKeeper session of this broker's predecessor: id and password, if it left one."""
        for directory in self._living():
            kept = directory.read_kept_session()
            if kept is not None:
                return kept
        return None

    def keep_session(self, session_id: int, password: bytes) -> None:
        """Leave this session to a successor. Raises OSError."""
        for directory in self._living()[:1]:
            directory.keep_session(session_id, password)

    def history(self) -> LogHistory:
        """Since when nothing was lost here; to be asked once started.

        Where a whole log is lost the disk is not the one it was. Raises OSError if not one
        directory can be used: then nobody knows, and a broker that registered all the same would
        be taken for one that lost what lies there.
        """
        self._check_that_one_lives()
        if self.lost:
            return LogHistory(None, is_new=True)
        return history_of_all([directory.history for directory in self._living()])

    async def write_history(self, unbroken_since: int) -> None:
        """Leave to the next life that nothing was lost since that broker epoch."""
        for directory in self._living():
            try:
                await self._runtime.offload.run(directory.write_history, unbroken_since)
            except OSError as error:
                self._directory_failed(directory, error)

    def damaged_checkpoints(self) -> dict[str, str]:
        """Files that could not be used at the start, and what is wrong with them."""
        return {p: fault for d in self.directories for p, fault in d.damaged.items()}

    @property
    def in_doubt(self) -> list[str]:
        """The paths of those where a flush had failed before the start."""
        return [directory.path for directory in self.directories if directory.was_in_doubt]

    def living_directories(self) -> list[str]:
        """The paths of those that have not failed."""
        return [directory.path for directory in self._living()]

    def _living(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is None]

    # ---- start and stop

    async def start(self) -> None:
        """Load every log, recovering those that were not closed in order; begin the rounds.

        Raises:
            UnusableLog: a partition lies in two directories.
        """
        loader = DirectoryLoader(self._config, self._runtime.offload, self._context)
        named, leaving = {}, dict[LogDirectory, list[str]]()
        for directory in self._living():
            try:
                loaded = await loader.load(directory)
            except OSError as error:
                self._directory_failed(directory, error)
                continue
            directory.loaded = True
            self.left_in_order = self.left_in_order and loaded.left_in_order
            for log in loaded.logs:
                self._add(log, directory)
            self._offline.update(loaded.unusable)
            named[directory.path] = loaded.named
            if loaded.to_delete:
                leaving[directory] = loaded.to_delete
        in_deletion = {deleted_log(posixpath.basename(f)) for fs in leaving.values() for f in fs}
        present = self._logs.keys() | self._offline.keys() | in_deletion
        for path, names in named.items():
            self.lost.look_for(path, names, present)
        for name, what in self.lost.describe().items():
            logger.error("%s is LOST: %s", name, what)
        for directory, folders in leaving.items():
            await self._end_deletions(directory, folders)
        self._rounds.start()

    async def _end_deletions(self, directory: LogDirectory, folders: Sequence[str]) -> None:
        """The checkpoints forget these logs first: else the next start would miss their folders."""
        await self.checkpoint_offsets(directory)
        await self._write_high_watermarks(directory)
        for folder in folders:
            self._keeper.remove_folder_later(folder, delay_ms=0)

    def _add(self, log: Log, directory: LogDirectory) -> None:
        name = log.topic_partition
        if name in self._home:
            raise UnusableLog(
                f"{name} lies in both {self._home[name].path} and {directory.path};"
                " remove the one that is out of date"
            )
        self._logs[name] = log
        self._home[name] = directory

    async def stop(self) -> None:
        """Flush and close every log, write all checkpoints, and mark the directories clean."""
        run = self._runtime.offload.run
        await self._rounds.close()
        await self._keeper.close()
        for directory in self._living():
            logs = self._logs_in(directory)
            try:
                await self._each(run(directory.watched, _flush_and_close, log) for log in logs)
                await run(directory.watched, self._leave_clean, directory, logs)
            except OSError as error:
                logger.error("data directory %s not closed in order: %s", directory.path, error)
        for log in self._logs.values():
            if not log.is_failed:
                with contextlib.suppress(OSError):  # reported above
                    log.close()

    def _leave_clean(self, directory: LogDirectory, logs: list[Log]) -> None:
        recovery_points = {log.topic_partition: log.recovery_point for log in logs}
        directory.recovery_points.write(encode_offsets(recovery_points))
        directory.log_starts.write(encode_offsets(_raised_log_starts(logs)))
        directory.high_watermarks.write(self._high_watermarks(directory))
        if directory.loaded:
            directory.mark_clean_shutdown()

    async def _each(self, jobs: Iterable[Coroutine[Any, Any, Any]]) -> None:
        """All of them, a few at once; the first error is raised when all have ended."""
        limit = asyncio.Semaphore(self._config[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR])

        async def run(job: Coroutine[Any, Any, Any]) -> None:
            async with limit:
                await job

        results = await asyncio.gather(*(run(job) for job in jobs), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    # ---- the logs

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def logs(self) -> list[Log]:
        """Those that can be used, in the order they were opened."""
        return list(self._logs.values())

    def configured_logs(self) -> list[Log]:
        """Those whose topic's own settings are known: retention by mere defaults could delete
        what a topic keeps for ever."""
        return [log for name, log in self._logs.items() if name in self._configured]

    def configured_topics(self) -> list[str]:
        """The topics of those, by name."""
        return sorted({name.topic for name in self._configured})

    def offline_logs(self) -> dict[TopicPartition, str]:
        """Those that are here and cannot be used, and why."""
        return dict(self._offline)

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether its log is here and cannot be used."""
        return topic_partition in self._offline

    async def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: str | None,
        config: LogConfig,
        is_new: bool,
        in_sync: bool = False,
    ) -> Log:
        """The log, with these settings from now on. `is_new`: the cluster has no such log yet;
        `in_sync`: it counts on what this one holds.

        Raises:
            LostLogError: it is in sync, and gone: an empty one must not take its place.
            KafkaStorageError: it is, or may be, in a directory that has failed.
            InconsistentTopicIdError: what is here belongs to an earlier topic of that name.
        """
        async with self._changing:
            log = self._logs.get(topic_partition)
            if log is None:
                if in_sync and not is_new and topic_partition in self.lost:
                    self.lost.refused[topic_partition] = None
                    raise LostLogError(
                        f"{topic_partition}: {self.lost.describe()[topic_partition]}"
                    )
                log = await self._create(topic_partition, config, is_new)
                self.lost.forget(topic_partition)
            if topic_id and log.topic_id and topic_id != log.topic_id:
                raise InconsistentTopicIdError(
                    f"{topic_partition}: the log here is of topic id {log.topic_id}, not {topic_id}"
                )
            if topic_id and not log.topic_id:
                await self._on_disk_of(log, log.set_topic_id, topic_id)
            log.config = config
            self._configured.add(topic_partition)
            self._rounds.settings_changed()
            return log

    def configure(self, topic: str | None, config_of: Callable[[str], LogConfig]) -> None:
        """Other settings from now on for the logs of a topic, or of all topics for None.

        Only of logs whose topic's settings were known before: see `configured_logs`.
        """
        for name in self._configured:
            if topic in (None, name.topic) and name in self._logs:
                self._logs[name].config = config_of(name.topic)
        self._rounds.settings_changed()

    async def _create(self, name: TopicPartition, config: LogConfig, is_new: bool) -> Log:
        living = self._living()
        if name in self._offline:
            raise KafkaStorageError(f"{name}: {self._offline[name]}")
        if not living or (not is_new and len(living) < len(self.directories)):
            raise KafkaStorageError(f"{name} may be in a data directory that has failed")
        directory = min(living, key=lambda one: len(self._logs_in(one)))
        folder = LogFolder(self._disk, f"{directory.path}/{name}", name, config)
        try:
            log = await self._runtime.offload.run(self._make, folder)
        except OSError as error:
            self._directory_failed(directory, error)
            raise KafkaStorageError(f"{name}: {error}") from error
        self._add(log, directory)
        logger.info("%s: log created in %s", name, directory.path)
        return log

    def _make(self, folder: LogFolder) -> Log:
        self._disk.make_directory(folder.path)
        return Log(self._context, folder, LogCheckpoint())

    async def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log out of use and its folder out of the way; the files go after a delay.

        Raises:
            KafkaStorageError: its directory has failed.
        """
        async with self._changing:
            if topic_partition in self._offline:
                raise KafkaStorageError(f"{topic_partition}: {self._offline[topic_partition]}")
            log = self._logs.pop(topic_partition, None)
            if log is None:
                self.lost.forget(topic_partition)
                return
            directory = self._home.pop(topic_partition)
            self._configured.discard(topic_partition)
            log.fail(OSError("deleted"))
            unique = self._runtime.randomness.randbytes(16).hex()
            renamed = f"{directory.path}/{name_for_deletion(topic_partition, unique)}"
            await self._on_disk_of(log, self._disk.rename, log.directory, renamed, at=directory)
            log.close()
            # A later log of that name must not inherit these offsets.
            await self.checkpoint_offsets(directory)
            await self._write_high_watermarks(directory)
            self._keeper.remove_folder_later(renamed, log.config.file_delete_delay_ms)

    async def _on_disk_of(
        self,
        log: Log,
        work: Callable[..., None],
        *args: Any,
        at: LogDirectory | None = None,
    ) -> None:
        try:
            await self._runtime.offload.run(work, *args)
        except OSError as error:
            self._directory_failed(at or self._home[log.topic_partition], error)
            raise KafkaStorageError(f"{log.topic_partition}: {error}") from error

    def _logs_in(self, directory: LogDirectory) -> list[Log]:
        return [log for name, log in self._logs.items() if self._home[name] is directory]

    async def flush(self, log: Log) -> None:
        """Make a log and its epochs durable; a failure puts its directory out of use."""
        await self._keeper.flush(log)

    # ---- checkpoints

    async def checkpoint_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint` in every directory."""
        for directory in self._living():
            if directory.loaded:
                await self._write_high_watermarks(directory)

    async def checkpoint_all_offsets(self) -> None:
        """Write the recovery points and log start offsets in every directory."""
        for directory in self._living():
            if directory.loaded:
                await self.checkpoint_offsets(directory)

    def _high_watermarks(self, directory: LogDirectory) -> bytes:
        logs = {log.topic_partition: log.high_watermark for log in self._logs_in(directory)}
        return encode_offsets(self.lost.high_watermarks(directory.path) | logs)

    async def _write_high_watermarks(self, directory: LogDirectory) -> None:
        try:
            await directory.high_watermarks.write_in_background(
                lambda: self._high_watermarks(directory), self._runtime.offload
            )
        except OSError as error:
            self._directory_failed(directory, error)

    async def checkpoint_offsets(self, directory: LogDirectory) -> None:
        """Write one directory's recovery points and log start offsets."""

        def recovery_points() -> bytes:
            logs = self._logs_in(directory)
            stored = {log.topic_partition: log.recovery_point for log in logs}
            directory.stored_recovery_points = stored
            return encode_offsets(stored)

        def log_starts() -> bytes:
            directory.stored_log_starts = _raised_log_starts(self._logs_in(directory))
            return encode_offsets(directory.stored_log_starts)

        offload = self._runtime.offload
        try:
            await directory.recovery_points.write_in_background(recovery_points, offload)
            await directory.log_starts.write_in_background(log_starts, offload)
        except OSError as error:
            self._directory_failed(directory, error)

    # ---- failure

    def _directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        if directory.failure is not None:
            return
        directory.failure = error
        if isinstance(error, FlushFailed):
            directory.doubt()
        logger.error("data directory %s is out of use: %s", directory.path, error)
        for log in self._logs_in(directory):
            log.fail(error)
            del self._logs[log.topic_partition]
            self._offline[log.topic_partition] = f"data directory {directory.path}: {error}"
        if self._on_directory_failure is not None:
            self._on_directory_failure(directory.path, error)


def _flush_and_close(log: Log) -> None:
    log.flush()
    log.close()


def _raised_log_starts(logs: Iterable[Log]) -> dict[TopicPartition, int]:
    """Only those that the files' names do not tell."""
    return {
        log.topic_partition: log.log_start_offset
        for log in logs
        if log.log_start_offset > log.segment_offsets[0]
    }

"""One data directory (an entry of `log.dirs`): its files besides the partitions' folders.

    .lock                    held while a broker uses the directory
    meta.properties          the cluster and the broker that the directory belongs to
    .kafka_cleanshutdown     exists after a clean shutdown
    .barnabas_history        since when nothing was lost (`log_history.py`)
    .barnabas_stamp          a growing number (`log_dir_stamps.py` of the server)
    .barnabas_flush_failed   exists while the page cache cannot be trusted (`rewrite.py`)
    .barnabas_flush_ok       exists while it can; a failed flush gives it the name above
    *-offset-checkpoint      see `offset_checkpoints.py`
    zookeeper.session        see `session_file.py` of the server

Called by the log manager. I/O errors are OSError.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk, FlushFailed, Lock, is_out_of_descriptors
from barnabas_broker.log.errors import DirectoryLockedError, InconsistentDirectoryError
from barnabas_broker.log.manager.offset_checkpoints import OffsetCheckpoints
from barnabas_broker.log.recovery.log_history import (
    LOST_SINCE,
    HistoryNote,
    LogHistory,
    history_of,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LOCK = ".lock"
_META_PROPERTIES = "meta.properties"
_CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_HISTORY = ".barnabas_history"
_STAMP = ".barnabas_stamp"
FLUSH_FAILED = ".barnabas_flush_failed"
_FLUSH_OK = ".barnabas_flush_ok"


class LogDirectory:
    """`failure` is set when the directory fails, `loaded` when its logs are open.

    `is_outdated`: it is an older copy of the directory that this broker last wrote to.
    `directories_before`: how many `log.dirs` the previous process had, 0 if that is unknown.
    `had_failed_flush`: a flush failed before this start; `has_failed_flush`: one failed since.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.failure: OSError | None = None
        self.loaded = False
        self.history = LogHistory(None, is_new=True)
        self.had_failed_flush = False
        self.has_failed_flush = False
        self.is_outdated = False
        self.directories_before = 0
        self.checkpoints = OffsetCheckpoints(disk, path)
        self._lock: Lock | None = None
        self._failed_flush_lock = threading.Lock()  # flushes fail on other threads

    def __repr__(self) -> str:
        return f"LogDirectory({self.path})"

    # ---- ownership

    @property
    def lock_path(self) -> str:
        return f"{self.path}/{_LOCK}"

    def lock(self) -> None:
        """Lock the directory for this process; create it if it does not exist.

        Raises:
            DirectoryLockedError: another process has it.
        """
        self.disk.make_directory(self.path)
        try:
            self._lock = self.disk.lock(self.lock_path)
        except BlockingIOError:
            raise DirectoryLockedError(
                f"data directory {self.path} is in use by another process"
            ) from None

    def unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def check_identity(self, cluster_id: str, broker_id: int) -> bool:
        """Whether `meta.properties` exists; it then names this cluster and this broker.

        Raises:
            InconsistentDirectoryError: it names another cluster or broker, or has another version.
        """
        path = f"{self.path}/{_META_PROPERTIES}"
        if not self.disk.exists(path):
            return False
        properties = _parse_properties(self.disk.read_file(path))
        if (version := properties.get("version", "0")) != "0":
            raise InconsistentDirectoryError(
                f"data directory {self.path} was written by another release: its"
                f" {_META_PROPERTIES} has version {version}, and this release reads version 0"
            )
        for name, ours in (("cluster.id", cluster_id), ("broker.id", str(broker_id))):
            theirs = properties.get(name)
            if theirs is not None and theirs != ours:
                raise InconsistentDirectoryError(
                    f"data directory {self.path} belongs to {name} {theirs}, not {ours}"
                    f" (see {_META_PROPERTIES} there)"
                )
        return True

    def write_identity(self, cluster_id: str, broker_id: int) -> None:
        text = f"#\nbroker.id={broker_id}\ncluster.id={cluster_id}\nversion=0\n"
        self.disk.write_file(f"{self.path}/{_META_PROPERTIES}", text.encode())

    # ---- clean shutdown

    def take_clean_shutdown(self) -> bool:
        """Whether the last shutdown was clean; the marker is removed durably before returning."""
        path = f"{self.path}/{_CLEAN_SHUTDOWN}"
        clean = self.disk.exists(path)
        self.had_failed_flush = self.disk.exists(self._failed_flush_path)
        note = self._read_history()
        self.history = history_of(
            note, self.disk.boot_id(), clean, self.had_failed_flush, self.is_outdated
        )
        if note is not None:
            self.directories_before = note.directories
            if self.history.unbroken_since is None:
                self._write_note(note._replace(unbroken_since=LOST_SINCE))
        self.disk.remove(path)
        self.disk.sync_directory(self.path)  # including renames of a killed process
        return clean and not self.had_failed_flush

    def mark_clean_shutdown(self) -> None:
        """Write the marker of a clean shutdown, after everything else is durable."""
        marker = b'{"version":0,"brokerEpoch":-1}'
        self.disk.write_file(f"{self.path}/{_CLEAN_SHUTDOWN}", marker)

    def _read_history(self) -> HistoryNote | None:
        """None without a usable file."""
        with contextlib.suppress(FileNotFoundError, KeyError, ValueError):
            properties = _parse_properties(self.disk.read_file(f"{self.path}/{_HISTORY}"))
            directories = int(properties.get("log.dirs", "0"))
            return HistoryNote(
                properties["boot.id"], int(properties["unbroken.since"]), directories
            )
        return None

    def write_history(self, unbroken_since: int, directories: int = 0) -> None:
        """Write the history for the next start; the logs must be as durable as the checkpoints."""
        self._write_note(HistoryNote(self.disk.boot_id(), unbroken_since, directories))
        with self._failed_flush_lock:
            if not self.has_failed_flush:
                self.disk.remove(self._failed_flush_path)
                self.disk.open(self._flush_ok_path, create=True).close()

    def _write_note(self, note: HistoryNote) -> None:
        text = f"boot.id={note.boot_id}\nunbroken.since={note.unbroken_since}\n"
        text += f"log.dirs={note.directories}\n"
        self.disk.write_file(f"{self.path}/{_HISTORY}", text.encode())

    # ---- the stamp that tells an older copy

    def read_stamp(self) -> int | None:
        """The number last written here; None in a directory that no broker has used yet."""
        if self._read_history() is None:
            return None
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(self.disk.read_file(f"{self.path}/{_STAMP}"))
        return 0

    def write_stamp(self, stamp: int) -> None:
        self.disk.write_file(f"{self.path}/{_STAMP}", b"%d\n" % stamp)

    # ---- failed flushes

    @property
    def _failed_flush_path(self) -> str:
        return f"{self.path}/{FLUSH_FAILED}"

    @property
    def _flush_ok_path(self) -> str:
        return f"{self.path}/{_FLUSH_OK}"

    def watched(self, work: Callable[..., T], *args: Any) -> T:
        """Return `work(*args)`; a failed flush in it is recorded before anything else happens."""
        try:
            return work(*args)
        except FlushFailed:
            self.record_failed_flush()
            raise

    def record_failed_flush(self) -> None:
        """Make the marker of a failed flush, by a rename, because there may be no file descriptor.

        It need not be flushed: it is lost only together with the page cache that must not be
        trusted.
        """
        with self._failed_flush_lock:
            self.has_failed_flush = True
            try:
                if self.disk.exists(self._flush_ok_path):
                    self.disk.rename(self._flush_ok_path, self._failed_flush_path, sync=False)
                else:  # it failed before, or before the first start was over
                    self.disk.open(self._failed_flush_path, create=True).close()
            except OSError as error:
                logger.error("%s: could not record that a flush has failed: %s", self.path, error)


def _parse_properties(data: bytes) -> Mapping[str, str]:
    """The simple part of Java's format; other lines are skipped."""
    properties = {}
    for line in data.decode(errors="replace").splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith(("#", "!")):
            properties[name.strip()] = value.strip()
    return properties


@contextlib.contextmanager
def before_its_logs(directory: LogDirectory) -> Iterator[None]:
    """Read or write a directory before its logs are opened; one that cannot be used has failed.

    Raises OSError if no file descriptor is left.
    """
    try:
        yield
    except OSError as error:
        if is_out_of_descriptors(error):
            raise
        logger.error("data directory %s cannot be used: %s", directory.path, error)
        directory.failure = error


def lock_all(directories: Iterable[LogDirectory]) -> None:
    """Lock every directory. Raises DirectoryLockedError, and as `before_its_logs`."""
    for directory in directories:
        with before_its_logs(directory):
            directory.lock()


def missing_directories(directories: Sequence[LogDirectory]) -> int:
    """How many `log.dirs` the broker has fewer than before. The logs in them are not here."""
    before = max((directory.directories_before for directory in directories), default=0)
    return max(before - len(directories), 0)


def check_any_live(directories: Sequence[LogDirectory]) -> None:
    """Raise the OSError of the last directory if all have failed."""
    failures = [directory.failure for directory in directories if directory.failure]
    if len(failures) == len(directories):
        raise failures[-1]


def check_identities(directories: Sequence[LogDirectory], cluster_id: str, broker_id: int) -> None:
    """Compare each directory's `meta.properties` with this cluster and broker, or write it.

    Raises as `before_its_logs`, and InconsistentDirectoryError if a directory belongs to another;
    nothing was written.
    """
    known = {}
    for directory in directories:
        with before_its_logs(directory):
            known[directory] = directory.check_identity(cluster_id, broker_id)
    for directory, is_known in known.items():
        if not is_known:
            with before_its_logs(directory):
                directory.write_identity(cluster_id, broker_id)


def with_folder(name: TopicPartition, directories: Iterable[LogDirectory]) -> LogDirectory | None:
    """The directory that already has a folder of this name: of a damaged log that was not opened,
    or of one whose creation failed. With folders in two directories a broker would not start."""
    return next((d for d in directories if d.disk.is_directory(f"{d.path}/{name}")), None)

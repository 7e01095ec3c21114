"""One data directory (`log.dirs` names one or more): what is in it besides partitions' folders.

    .lock                             held while a broker uses the directory
    meta.properties                   which cluster and which broker it belongs to
    .kafka_cleanshutdown              there while the directory is at rest in good order
    recovery-point-offset-checkpoint  up to where each log survives a power loss
    log-start-offset-checkpoint       starts that lie above the first segment's base
    replication-offset-checkpoint     high watermarks
    .barnabas_history                 since when nothing was lost here (`log_history.py`)
    .barnabas_flush_failed            there while the page cache is in doubt (`rewrite.py`)
    zookeeper.session                 the broker's session, so that a successor can close it

Called by the log manager. I/O errors are OSError.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from barnabas.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk, FlushFailed, Lock
from barnabas_broker.log.checkpoint_file import CheckpointFile, decode_offsets, encode_offsets
from barnabas_broker.log.errors import (
    DirectoryLockedError,
    InconsistentDirectoryError,
    MalformedCheckpoint,
)
from barnabas_broker.log.log_history import HistoryNote, LogHistory, history_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LOCK = ".lock"
_META_PROPERTIES = "meta.properties"
_CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_SESSION = "zookeeper.session"
_HISTORY = ".barnabas_history"
FLUSH_FAILED = ".barnabas_flush_failed"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"


class LogDirectory:
    """`failure` is set once the directory is out of use; `loaded` once its logs are open.
    `damaged`: checkpoint files that could not be used, and what is wrong with them.
    `was_in_doubt`: a flush had failed in an earlier life; `is_in_doubt`: one has in this life."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.failure: OSError | None = None
        self.loaded = False
        self.history = LogHistory(None, is_new=True)
        self.damaged: dict[str, str] = {}
        self.was_in_doubt = False
        self.is_in_doubt = False
        self.recovery_points = CheckpointFile(disk, f"{path}/{RECOVERY_POINTS}")
        self.log_starts = CheckpointFile(disk, f"{path}/{LOG_STARTS}")
        self.high_watermarks = CheckpointFile(disk, f"{path}/{HIGH_WATERMARKS}")
        # What the files hold, or are about to: the upper bound of what a crash can bring back.
        self.stored_recovery_points: dict[TopicPartition, int] = {}
        self.stored_log_starts: dict[TopicPartition, int] = {}
        self._lock: Lock | None = None
        self._doubting = threading.Lock()  # flushes fail on other threads

    def __repr__(self) -> str:
        return f"LogDirectory({self.path})"

    # ---- who may use it

    def lock(self) -> None:
        """Take the directory for this process, making it if need be.

        Raises:
            DirectoryLockedError: another process has it.
        """
        self.disk.make_directory(self.path)
        try:
            self._lock = self.disk.lock(f"{self.path}/{_LOCK}")
        except BlockingIOError:
            raise DirectoryLockedError(
                f"data directory {self.path} is in use by another process"
            ) from None

    def unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def check_identity(self, cluster_id: str, broker_id: int) -> bool:
        """Whether `meta.properties` is there, and names this cluster and this broker.

        Raises:
            InconsistentDirectoryError: it names another.
        """
        path = f"{self.path}/{_META_PROPERTIES}"
        if not self.disk.exists(path):
            return False
        properties = _parse_properties(self.disk.read_file(path))
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
        """Whether the directory was left in good order; the marker is gone, durably, on return."""
        path = f"{self.path}/{_CLEAN_SHUTDOWN}"
        clean = self.disk.exists(path)
        self.was_in_doubt = self.disk.exists(self._doubt)
        self.history = history_of(
            self._read_history(), self.disk.boot_id(), clean, self.was_in_doubt
        )
        self.disk.remove(path)
        self.disk.sync_directory(self.path)  # also what a killed predecessor had renamed
        return clean and not self.was_in_doubt

    def mark_clean_shutdown(self) -> None:
        """To be called last, when everything else is durable."""
        marker = b'{"version":0,"brokerEpoch":-1}'
        self.disk.write_file(f"{self.path}/{_CLEAN_SHUTDOWN}", marker)

    def _read_history(self) -> HistoryNote | None:
        """None where nothing usable was left."""
        with contextlib.suppress(FileNotFoundError, KeyError, ValueError):
            properties = _parse_properties(self.disk.read_file(f"{self.path}/{_HISTORY}"))
            return HistoryNote(properties["boot.id"], int(properties["unbroken.since"]))
        return None

    def write_history(self, unbroken_since: int) -> None:
        """Leave a note to the next life, once all is as durable as the checkpoints say."""
        text = f"boot.id={self.disk.boot_id()}\nunbroken.since={unbroken_since}\n"
        self.disk.write_file(f"{self.path}/{_HISTORY}", text.encode())
        with self._doubting:
            if not self.is_in_doubt:
                self.disk.remove(self._doubt)

    # ---- flushes that fail

    @property
    def _doubt(self) -> str:
        return f"{self.path}/{FLUSH_FAILED}"

    def watched(self, work: Callable[..., T], *args: Any) -> T:
        """Do it; a flush that fails in it is noted before anything else can happen."""
        try:
            return work(*args)
        except FlushFailed:
            self.doubt()
            raise

    def doubt(self) -> None:
        """Note that a flush has failed. Not flushed, and it need not be: the mark is lost only with
        the very page cache of which it warns."""
        with self._doubting:
            self.is_in_doubt = True
            try:
                self.disk.open(self._doubt, create=True).close()
            except OSError as error:
                logger.error("%s: could not note that a flush has failed: %s", self.path, error)

    # ---- checkpoints

    def read_checkpoint(self, file: CheckpointFile) -> dict[TopicPartition, int]:
        """Its offsets. A damaged file counts as empty: then more is recovered than need be."""
        try:
            return decode_offsets(file.read())
        except MalformedCheckpoint as error:
            logger.error("%s is damaged and not used: %s", file.path, error)
            self.damaged[file.path] = str(error)
            return {}

    def lower_checkpoints(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Let none on disk name an offset above `end_offset`, before the log is cut there."""
        for file, stored in (
            (self.recovery_points, self.stored_recovery_points),
            (self.log_starts, self.stored_log_starts),
        ):
            file.supersede()
            if stored.get(topic_partition, 0) > end_offset:
                stored[topic_partition] = end_offset
                file.write(encode_offsets(stored))

    # ---- the ZooKeeper session of this broker's predecessor

    def read_kept_session(self) -> tuple[int, bytes] | None:
        """Id and password; None if nothing usable was kept."""
        with contextlib.suppress(FileNotFoundError, KeyError, ValueError):
            properties = _parse_properties(self.disk.read_file(f"{self.path}/{_SESSION}"))
            return int(properties["id"], 16), bytes.fromhex(properties["password"])
        return None

    def keep_session(self, session_id: int, password: bytes) -> None:
        """The file is readable by the broker's own user only: the password opens the session."""
        text = f"id={session_id:x}\npassword={password.hex()}\n"
        self.disk.write_file(f"{self.path}/{_SESSION}", text.encode(), private=True)


def _parse_properties(data: bytes) -> Mapping[str, str]:
    """The simple part of Java's format, which is all that `Properties.store` writes here."""
    properties = {}
    for line in data.decode(errors="replace").splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith(("#", "!")):
            properties[name.strip()] = value.strip()
    return properties

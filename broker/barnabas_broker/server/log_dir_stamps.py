"""Recognizes a data directory that is an older copy of the one this broker last wrote to.

A backup that was put back after a crash looks sound: it has logs, checkpoints, even a boot id that
matches. But its logs end too early, and records that this broker acknowledged are gone. Therefore
the broker writes the same growing number into each of its directories and then into a znode of its
own, at each start and every few seconds. A directory that starts behind the znode is such a copy:
the broker then counts as one that has lost records, and elections pass it over (`unbroken_since`).

A missing znode, or one that is behind, proves nothing about the directories. A znode that is behind
by more than one stamp shows that ZooKeeper itself was restored from an older copy (`is_ahead`): a
crash between the two writes leaves it behind by one. A copy that was taken after the last stamp is
not recognized: the window is one interval, and two for ZooKeeper.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping

from barnabas_common.events import EventKind, EventLog
from barnabas_common.runtime import TaskScope
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import AHEAD_SINCE_REGISTRATION, LogDirStamp
from barnabas_controller.zookeeper.session import SessionExpired

from barnabas_broker.log.manager.log_directory import before_its_logs
from barnabas_broker.log.manager.log_manager import LogManager

logger = logging.getLogger(__name__)


def outdated_directories(stamps: Mapping[str, int], registered: int | None) -> list[str]:
    """Which directories (by path, with their stamps) are behind the broker's znode."""
    if registered is None:
        return []
    return [path for path, stamp in stamps.items() if stamp < registered]


def are_ahead(stamps: Mapping[str, int], registered: int | None) -> bool:
    """Whether the directories are newer than the broker's znode: ZooKeeper was restored."""
    return registered is not None and max(stamps.values(), default=0) > registered + 1


class LogDirStamps:
    """Compares the stamps at a start, then renews them until `close`. `interval` in seconds.

    `ahead_since` is what the broker registers: the broker epoch since which it is known that its
    directories are newer than a restored ZooKeeper. Partition states from before that may be older
    than its logs. `registered_ahead_since` returns it once the broker has registered.
    """

    def __init__(
        self,
        log_manager: LogManager,
        store: Callable[[], Store | None],
        broker_id: int,
        interval: float,
        events: EventLog,
        registered_ahead_since: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._log_manager = log_manager
        self._store = store
        self._path = znodes.log_dir_stamp_path(broker_id)
        self._interval = interval
        self._events = events
        self._stamp = 0
        self._registered_ahead_since = registered_ahead_since
        self.ahead_since: int | None = None
        self._tasks = TaskScope("log directory stamps")

    @property
    def is_ahead(self) -> bool:
        """Whether ZooKeeper was restored since this broker ran last."""
        return self.ahead_since == AHEAD_SINCE_REGISTRATION

    async def compare(self) -> None:
        """Mark the directories that are older copies. Call this before the logs are opened."""
        store = self._store()
        found = await self._registered(store) if store is not None else None
        registered = None if found is None else found.stamp
        stamps = self._read()
        outdated = outdated_directories(stamps, registered)
        for directory in self._log_manager.directories:
            directory.is_outdated = directory.path in outdated
        self._stamp = max([registered or 0, *stamps.values()])
        self.ahead_since = None if found is None else found.ahead_since
        if are_ahead(stamps, registered):
            self.ahead_since = AHEAD_SINCE_REGISTRATION
        for path in outdated:
            self._events.record(
                EventKind.LOG_DIRECTORY_OUTDATED,
                f"{path} is an older copy: its stamp is {stamps[path]}, and this broker has"
                f" written {registered}; what came in between counts as lost",
                directory=path,
                stamp=stamps[path],
                last_stamp=registered,
            )

    async def start(self) -> None:
        """Write a new stamp, and then one every `interval` seconds."""
        await self._renew()
        self._tasks.repeat(self._renew, self._interval, "renew")

    async def close(self) -> None:
        await self._tasks.close()

    def _read(self) -> dict[str, int]:
        """The stamp of each directory that was used before, by its path."""
        usable = [one for one in self._log_manager.directories if one.failure is None]
        found: dict[str, int | None] = {}
        for directory in usable:
            with before_its_logs(directory):
                found[directory.path] = directory.read_stamp()
        return {path: stamp for path, stamp in found.items() if stamp is not None}

    async def _registered(self, store: Store) -> LogDirStamp | None:
        found = await store.get(self._path)
        if found is None:
            return None
        try:
            return znodes.decode_log_dir_stamp(self._path, found[0])
        except MalformedZnode as error:
            store.report(error)
            return None

    async def _renew(self) -> None:
        """Write the directories before the znode: a crash leaves them ahead by one, not behind.

        If the znode cannot be written, the next stamp is the same one, so that it stays one.
        """
        store = self._store()
        if store is None or self._has_failed_directory():
            return
        stamp = self._stamp + 1
        try:
            await self._log_manager.write_stamp(stamp)
        except OSError as error:  # no file descriptor: the znode must not pass the directories
            logger.warning("the stamps of the data directories are not renewed: %s", error)
            return
        if self._has_failed_directory():
            return
        with contextlib.suppress(SessionExpired):
            written = LogDirStamp(stamp, self._registered_ahead_since())
            await store.put(self._path, znodes.encode_log_dir_stamp(written))
            self._stamp = stamp

    def _has_failed_directory(self) -> bool:
        """One that works again must not look like an older copy."""
        return any(directory.failure is not None for directory in self._log_manager.directories)

"""Translates kazoo's types, and adds what kazoo lacks; used by `kazoo_session` alone.

Kazoo lacks a handler that keeps replies and watch events in one order, and the request by which a
client renews its watches on a new connection.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack
from typing import Any, ClassVar

from kazoo import exceptions as kazoo
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.hosts import collect_hosts
from kazoo.protocol.paths import normpath
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.protocol.states import WatchedEvent, ZnodeStat

from barnabas_controller.zookeeper.session import (
    BadVersion,
    ConnectionLoss,
    EventType,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    OperationResult,
    RolledBack,
    SessionExpired,
    Stat,
    Watch,
    WatchEvent,
    ZooKeeperError,
)

# The first match counts. In kazoo ConnectionClosedError is a SessionExpiredError, although it only
# means that the socket was closed.
_ERRORS: tuple[tuple[type[Exception], type[ZooKeeperError]], ...] = (
    (kazoo.NoNodeError, NoNode),
    (kazoo.NodeExistsError, NodeExists),
    (kazoo.BadVersionError, BadVersion),
    (kazoo.NotEmptyError, NotEmpty),
    (kazoo.NoChildrenForEphemeralsError, NoChildrenForEphemerals),
    (kazoo.ConnectionLoss, ConnectionLoss),
    (kazoo.ConnectionClosedError, ConnectionLoss),
    (kazoo.ConnectionDropped, ConnectionLoss),
    (kazoo.SessionMovedError, ConnectionLoss),
    (kazoo.OperationTimeoutError, ConnectionLoss),
    (kazoo.RequestTimeoutError, ConnectionLoss),
    (kazoo.SessionExpiredError, SessionExpired),
    # In a failed multi: OK for the operations before the failed one, this for those after it.
    (kazoo.RolledBackError, RolledBack),
    (kazoo.RuntimeInconsistency, RolledBack),
)

_EVENTS = {
    KazooEventType.CREATED: EventType.CREATED,
    KazooEventType.DELETED: EventType.DELETED,
    KazooEventType.CHANGED: EventType.CHANGED,
    KazooEventType.CHILD: EventType.CHILDREN,
}

_WATCHES_PER_REQUEST = 1000


def check_address(text: str) -> None:
    """Raise ZooKeeperError unless the text is `host:port,...[/chroot]`."""
    hosts, _, chroot = text.partition("/")
    try:
        collect_hosts(hosts)
        normpath(chroot)
    except ValueError as error:
        raise ZooKeeperError(
            f"{text!r} is no ZooKeeper address host:port,...[/chroot]: {error}"
        ) from None


def translate(error: Exception, path: str) -> ZooKeeperError:
    """The exception of `session.py` that corresponds to kazoo's; its message has the path."""
    for theirs, ours in _ERRORS:
        if isinstance(error, theirs):
            return ours(path)
    return ZooKeeperError(f"{path}: {type(error).__name__}: {error}")


def stat_of(stat: ZnodeStat) -> Stat:
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        version=stat.version,
        ephemeral_owner=stat.ephemeralOwner,
        created_ms=stat.ctime,
        modified_ms=stat.mtime,
        children=stat.numChildren,
    )


def multi_results(
    operations: Sequence[Operation], answers: Sequence[Any], chroot: str
) -> list[OperationResult]:
    """The results of a multi from kazoo's answers, one per operation and in order."""
    results: list[OperationResult] = []
    for operation, answer in zip(operations, answers, strict=True):
        if isinstance(answer, Exception):
            results.append(translate(answer, operation.path))
        elif isinstance(answer, ZnodeStat):
            results.append(stat_of(answer))
        else:
            results.append(answer.removeprefix(chroot) if isinstance(answer, str) else None)
    return results


@dataclass(unsafe_hash=True)
class Watcher:
    """Called by kazoo when a watch fires: passes `watch` and the event to `deliver`.

    Watchers of the same watch are equal, so that two reads before it fires arm it once, as in
    ZooKeeper's own client. `missing` says that `exists` found no znode.
    """

    watch: Watch
    deliver: Callable[[Watch, WatchEvent], None]
    missing: bool = field(default=False, compare=False)

    def __call__(self, event: WatchedEvent) -> None:
        # NONE means a lost connection in kazoo; the session re-arms the watch.
        if event.type in _EVENTS:
            self.deliver(self.watch, WatchEvent(_EVENTS[event.type], event.path))


class InlineHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Calls back on kazoo's connection thread, in the order in which the server sent.

    Kazoo's own handler has one thread for replies and another for watch events, so a reply could
    overtake an event that was sent before it. Callbacks must never block.
    """

    running = False  # kazoo then calls back immediately instead of queueing for a thread

    def __init__(self, connect_timeout: float) -> None:
        super().__init__()
        self._connect_timeout = connect_timeout

    def start(self) -> None:
        """No threads to start."""

    def stop(self) -> None:
        """No threads to stop."""

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Limit the wait for one server, so that the session does not expire before the next."""
        kwargs["timeout"] = self._connect_timeout
        return super().create_connection(*args, **kwargs)

    def select(self, reading: Any, writing: Any, failing: Any, timeout: float | None = None) -> Any:
        """Limit the wait for the answer to the handshake, for which kazoo would wait until the
        session expires. A server that is just starting may take the request and never answer.

        Once connected, kazoo waits for two sockets; for one only within an answer.
        """
        if timeout is not None and len(reading) == 1:
            timeout = min(timeout, self._connect_timeout)
        return super().select(reading, writing, failing, timeout)


@dataclass(frozen=True)
class SetWatches:
    """ZooKeeper's request 101: renew these watches on a new connection.

    The server fires the watches of znodes that changed after `zxid` immediately, and keeps the
    others.
    """

    zxid: int
    data: tuple[str, ...]
    missing: tuple[str, ...]
    children: tuple[str, ...]
    type: ClassVar[int] = 101

    @classmethod
    def since(
        cls,
        zxid: int,
        data: Mapping[str, Iterable[Watcher]],
        children: Mapping[str, Iterable[Watcher]],
    ) -> list["SetWatches"]:
        """The requests that renew these watches; none if there are no watches."""
        watches = [
            ("missing" if any(watcher.missing for watcher in watchers) else "data", path)
            for path, watchers in data.items()
            if watchers
        ]
        watches += [("children", path) for path, watchers in children.items() if watchers]
        requests = []
        for start in range(0, len(watches), _WATCHES_PER_REQUEST):
            paths: dict[str, list[str]] = {"data": [], "missing": [], "children": []}
            for kind, path in watches[start : start + _WATCHES_PER_REQUEST]:
                paths[kind].append(path)
            requests.append(cls(zxid, *map(tuple, paths.values())))
        return requests

    def serialize(self) -> bytes:
        parts = [pack("!q", self.zxid)]
        for paths in (self.data, self.missing, self.children):
            parts.append(pack("!i", len(paths)))
            for path in paths:
                encoded = path.encode()
                parts.append(pack("!i", len(encoded)) + encoded)
        return b"".join(parts)

    @classmethod
    def deserialize(cls, _buffer: bytes, _offset: int) -> bool:
        """The reply has no body."""
        return True

"""An in-memory ZooKeeper for the simulation: one server, sessions, watches, and faults on demand.

    zookeeper = MemoryZooKeeper()
    client = zookeeper.client("broker-1")       # one per simulated process
    session = await client.connect(6000, 1000)  # a `Connect`, as kazoo's
    client.disconnect()                         # its session expires after 6 s of the loop's time

Messages travel over links that take `latency` seconds and keep their order, on the event loop's
own clock; nothing is random. Held to the same contract tests as a real ensemble.
"""

import asyncio
import hashlib
import random
from collections.abc import Callable
from contextvars import Context
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from barnabas_controller.zookeeper.session import (
    Create,
    Delete,
    Session,
    SessionExpired,
    SetData,
    WatchEvent,
    ZooKeeperError,
)

from barnabas_simulator.zookeeper.client import MemoryClient, ServerSession
from barnabas_simulator.zookeeper.lagging import Change, LaggingServer
from barnabas_simulator.zookeeper.session import (
    Fault,
    Link,
    MemorySession,
    Reply,
    Request,
    Watching,
)
from barnabas_simulator.zookeeper.tree import Tree
from barnabas_simulator.zookeeper.watches import Watches

T = TypeVar("T")

_FIRST_SESSION_ID = 0x1000_0000_0000


@dataclass(frozen=True)
class ZooKeeperCopy:
    """The znodes, and the sessions with their passwords and timeouts."""

    tree: Tree
    sessions: dict[int, tuple[bytes, float]]


class MemoryZooKeeper:
    """The server. `latency` is one way, in seconds; `wall_ms` stamps the znodes."""

    def __init__(self, latency: float = 0.0005, wall_ms: Callable[[], int] | None = None) -> None:
        self.latency = latency
        self.tree = Tree()
        self.running = True
        self.acceptances: list[Callable[[], None]] = []
        """Called when all processes have ended that had seen more than a restored copy has."""
        self.is_by_tool = False
        """Whether the change that is observed now was made by a tool, not by a broker."""
        self.observers: list[Callable[[list[WatchEvent]], None]] = []
        """Called with every change when it is made, before any watch."""
        self._wall_ms = wall_ms
        self._context = Context()  # its own, so that no client's death removes its timers
        self._sessions: dict[int, ServerSession] = {}
        self._ending: dict[int, ServerSession] = {}  # ended, and their server lags
        self._opened = 0
        self._clients: dict[str, MemoryClient] = {}
        self.watches = Watches()
        self._lagging: dict[str, LaggingServer] = {}  # by the host that is connected to it
        # Called with the paths that a request has just changed, before the answer is sent.
        self.on_write: Callable[[list[str]], None] | None = None

    def client(self, name: str = "client") -> MemoryClient:
        """Return the process of that name; the same object at every call."""
        return self._clients.setdefault(name, MemoryClient(self, name))

    def now_ms(self) -> int:
        if self._wall_ms is not None:
            return self._wall_ms()
        return int(asyncio.get_running_loop().time() * 1000)

    # Faults

    def stop(self) -> None:
        """Shut down: connections break, and no session expires while the server is down."""
        self.running = False
        for record in list(self._sessions.values()):
            if record.holder is not None:
                record.holder.lose_connection()
            self._keep_alive(record)
        for host in list(self._lagging):
            self._catch_up(host)

    def start(self) -> None:
        """Start again with all data; every session has its whole timeout to reconnect."""
        self.running = True
        for record in list(self._sessions.values()):
            self._await_expiry(record)
        for client in self._clients.values():
            for session in list(client.sessions):
                session.reconnect_soon()

    def copy(self) -> ZooKeeperCopy:
        """A copy of the data directory, as a backup takes it."""
        sessions = {i: (r.password, r.timeout) for i, r in self._sessions.items()}
        return ZooKeeperCopy(deepcopy(self.tree), sessions)

    def restore(self, copy: ZooKeeperCopy) -> None:
        """Put a copy back, while the server is stopped: what came after it is gone."""
        assert not self.running
        self.tree = deepcopy(copy.tree)
        self.watches = Watches()
        self._sessions = {
            session_id: ServerSession(session_id, password, timeout)
            for session_id, (password, timeout) in copy.sessions.items()
        }

    def accept_copy(self) -> None:
        """Notify those who are concerned that no process is left that has seen more."""
        for accept in self.acceptances:
            accept()

    def lag(self, host: str, seconds: float, chance: random.Random) -> Callable[[], None] | None:
        """Let the server that a host is connected to fall behind the others.

        Its clients may find another when they reconnect. Returns what lets it catch up; None if it
        lags already.
        """
        if not self.running or host in self._lagging:
            return None
        server = LaggingServer(self.tree, seconds, chance, self._context)
        self._lagging[host] = server
        for record in self._sessions.values():
            if record.holder is not None and record.holder.host == host:
                self._move(record, server)

        def end() -> None:
            if self._lagging.get(host) is server:
                self._catch_up(host)

        return end

    def _catch_up(self, host: str) -> None:
        server = self._lagging.pop(host)
        server.catch_up()
        for record in self._sessions.values():
            if record.behind is server:
                self._move(record, None)

    def _move(self, record: ServerSession, server: LaggingServer | None) -> None:
        """Let another server, or the head, have a session and its watches."""
        before, record.behind = record.behind, server
        if before is server:
            return
        source = self.watches.take if before is None else before.leave
        target = self.watches if server is None else server.watches
        for watching in source(record.session_id):
            target.add(watching)

    def expire(self, session: Session) -> None:
        """End a session now, as if its timeout had passed."""
        record = self._sessions.get(session.session_id)
        if record is not None:
            self._end(record)

    def lose_next_request(self, session: Session, path_prefix: str = "/") -> None:
        """Break the connection when the next request for such a path arrives: not applied."""
        _memory(session).fault = Fault(path_prefix, applied=False)

    def lose_next_reply(self, session: Session, path_prefix: str = "/") -> None:
        """Break the connection after the next request for such a path was applied."""
        _memory(session).fault = Fault(path_prefix, applied=True)

    def put(self, path: str, data: bytes, sequential: bool = False) -> None:
        """Create or overwrite a znode, as another tool would; `sequential` as in ZooKeeper."""
        now = self.now_ms()
        if sequential:
            self._by_tool(lambda tree: tree.create_sequential(Create(path, data), 0, now))
        else:
            exists = self.tree.find(path) is not None
            operation = SetData(path, data) if exists else Create(path, data)
            self._by_tool(lambda tree: tree.apply(operation, 0, now))

    def delete(self, path: str) -> None:
        """Delete a znode, as another tool would."""
        now = self.now_ms()
        self._by_tool(lambda tree: tree.apply(Delete(path), 0, now))

    def _by_tool(self, change: Change) -> None:
        self._commit(change)
        if self.on_write is not None:
            self.on_write([event.path for event in self.tree.changed])
        self.is_by_tool = True
        self._fire(self.tree.changed)
        self.is_by_tool = False

    # Sessions

    def open_session(self, timeout: float, attach: tuple[int, bytes] | None) -> ServerSession:
        """Return a new session, or the one to attach to; raises SessionExpired."""
        if attach is not None:
            record = self._sessions.get(attach[0])
            if record is None or record.password != attach[1]:
                raise SessionExpired(f"the session {attach[0]:#x} is over, or is not ours")
            record.timeout = timeout
            return record
        self._opened += 1
        session_id = _FIRST_SESSION_ID + self._opened
        password = hashlib.sha256(session_id.to_bytes(8, "big")).digest()[:16]
        record = ServerSession(session_id, password, timeout)
        self._sessions[session_id] = record
        return record

    def reattach(self, session: MemorySession) -> None:
        """Let a client whose connection broke continue its session, or notify it of the expiry."""
        record = self._sessions.get(session.session_id)
        if record is None:
            session.expired()
        else:
            self.attach(record, session)

    def attach(self, record: ServerSession, session: MemorySession) -> None:
        """Give the session to this client alone; another one loses its connection."""
        if record.holder not in (None, session):
            record.holder.lose_connection()
        self._keep_alive(record)
        record.holder = session
        server = self._lagging.get(session.host)
        lands_there = server is not None and server.accepts(session)
        self._move(record, server if lands_there else None)
        session.connected(
            Link(self.latency, self.handle, self._context),
            Link(self.latency, session.receive, session.context),
        )

    async def opened(self, record: ServerSession) -> None:
        """Wait until the server of a new session has made the change that opened it."""
        if record.behind is not None:
            arrived = asyncio.Event()
            record.behind.after_latest(arrived.set)
            await arrived.wait()

    def lost(self, session: MemorySession) -> None:
        """Start the session's timeout, after the connection of its client broke."""
        record = self._sessions.get(session.session_id)
        if record is not None and record.holder is session:
            record.holder = None
            self._await_expiry(record)

    def miss_heartbeats(self, session: MemorySession) -> None:
        """Start the session's timeout, although its connection is open."""
        record = self._sessions.get(session.session_id)
        if record is not None and record.holder is session:
            self._await_expiry(record)

    def hear(self, session: MemorySession) -> None:
        """Undo `miss_heartbeats`, if the session has not expired."""
        record = self._sessions.get(session.session_id)
        if record is not None and record.holder is session:
            self._keep_alive(record)

    def _await_expiry(self, record: ServerSession) -> None:
        self._keep_alive(record)
        if self.running:
            loop = asyncio.get_running_loop()
            record.expiry = loop.call_later(
                record.timeout, self._end, record, context=self._context
            )

    def _keep_alive(self, record: ServerSession) -> None:
        if record.expiry is not None:
            record.expiry.cancel()
            record.expiry = None

    def _end(self, record: ServerSession) -> None:
        """End a session: delete its ephemerals, and disconnect a client that still holds it."""
        self._keep_alive(record)
        del self._sessions[record.session_id]
        self.watches.take(record.session_id)
        self._commit(lambda tree: tree.delete_ephemerals(record.session_id))
        self._fire(self.tree.changed)
        if record.behind is None:
            self._disconnect(record)
        else:
            self._ending[record.session_id] = record
            record.behind.after_latest(partial(self._disconnect, record))

    def _disconnect(self, record: ServerSession) -> None:
        self._ending.pop(record.session_id, None)
        if record.behind is not None:
            record.behind.watches.take(record.session_id)
        if record.holder is not None:
            record.holder.lose_connection()

    # Requests

    def handle(self, message: object) -> None:
        """Carry out a request that arrived over a link."""
        assert isinstance(message, Request)
        session = message.session
        record = self._known(session)
        if record is None:
            return  # sent before its session expired
        fault = session.fault
        hit = fault is not None and message.path.startswith(fault.path_prefix)
        if fault is not None and hit:
            session.fault = None
            if not fault.applied:
                session.lose_connection()
                return
        if message.reads:
            read = partial(self._read, record, message, session.link)
            read() if record.behind is None else record.behind.in_turn(record.session_id, read)
        elif record.session_id in self._sessions:
            self._write(record, message)
        if hit:
            session.lose_connection()

    def _known(self, session: MemorySession) -> ServerSession | None:
        """Return a session that lives, or of whose end its server has not heard yet."""
        return self._sessions.get(session.session_id) or self._ending.get(session.session_id)

    def _read(self, record: ServerSession, request: Request, link: Link | None) -> None:
        session, behind = request.session, record.behind
        if link is None or session.link is not link:
            return  # its connection broke before its turn
        tree = self.tree if behind is None else behind.tree
        watches = self.watches if behind is None else behind.watches
        result, error = _result(request, tree, self.now_ms())
        if error is None and request.watch is not None:
            request.watching = watches.arm(session, request.kind, request.path, request.watch)
        link.deliver(Reply(request, result, error, tree.zxid))

    def _write(self, record: ServerSession, request: Request) -> None:
        """Change the head; answer when the client's server has made the change too."""
        link, behind, now = request.session.link, record.behind, self.now_ms()
        result, error = None, None
        if request.closes_session:
            record.holder = None
            self._end(record)
        else:
            self.tree.changed = []
            result, error = self._commit(lambda tree: _result(request, tree, now))
            if error is None:
                self._fire(self.tree.changed)
        if self.on_write is not None and self.tree.changed:
            self.on_write([event.path for event in self.tree.changed])

        def answer() -> None:
            if link is not None and request.session.link is link:
                tree = self.tree if behind is None else behind.tree
                link.deliver(Reply(request, result, error, tree.zxid))

        answer() if behind is None else behind.after_latest(answer, record.session_id)

    def _commit(self, change: Callable[[Tree], T]) -> T:
        """Change the head, and in time the servers that lag."""
        try:
            return change(self.tree)
        finally:
            for server in self._lagging.values():
                server.committed(change, self.tree.changed)

    # Watches

    def zxid_of(self, session: MemorySession) -> int:
        record = self._known(session)
        tree = self.tree if record is None or record.behind is None else record.behind.tree
        return tree.zxid

    def disarm(self, watching: Watching) -> None:
        """Remove a watch whose reply never reached the client."""
        for watches in (self.watches, *(server.watches for server in self._lagging.values())):
            watches.disarm(watching)

    def _fire(self, events: list[WatchEvent]) -> None:
        if events:
            for observe in self.observers:
                observe(events)
        self.watches.fire(events)


def _result(request: Request, tree: Tree, now_ms: int) -> tuple[Any, ZooKeeperError | None]:
    """Carry out a request; a missing node is no error for `exists`."""
    try:
        return request.apply(tree, request.session.session_id, now_ms), None
    except ZooKeeperError as error:
        return None, None if request.watches_missing(error) else error


def _memory(session: Session) -> MemorySession:
    if not isinstance(session, MemorySession):
        raise TypeError(f"not a session of the in-memory ZooKeeper: {session!r}")
    return session

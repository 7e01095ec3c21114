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
from collections.abc import Callable
from contextvars import Context
from copy import deepcopy
from dataclasses import dataclass, field

from barnabas_controller.zookeeper.session import (
    Create,
    EventType,
    Session,
    SessionExpired,
    SetData,
    Watch,
    WatchEvent,
    ZooKeeperError,
    ZooKeeperUnreachable,
    unreachable,
)

from barnabas_simulator.zookeeper.session import (
    Event,
    Fault,
    Link,
    MemorySession,
    Reply,
    Request,
    Watching,
    WatchKind,
)
from barnabas_simulator.zookeeper.tree import Tree

_FIRST_SESSION_ID = 0x1000_0000_0000
_RETRY_SECONDS = 0.1
_FIRES = {
    EventType.CREATED: (WatchKind.DATA,),
    EventType.CHANGED: (WatchKind.DATA,),
    EventType.DELETED: (WatchKind.DATA, WatchKind.CHILDREN),
    EventType.CHILDREN: (WatchKind.CHILDREN,),
}


@dataclass(eq=False)
class ServerSession:
    """A session at the server: the client's side that holds it now, and when it will expire."""

    session_id: int
    password: bytes
    timeout: float
    holder: MemorySession | None = None
    expiry: asyncio.TimerHandle | None = None


@dataclass(eq=False)
class MemoryClient:
    """One process's way to ZooKeeper; `connect` is a `Connect`."""

    server: "MemoryZooKeeper"
    name: str
    reachable: bool = True
    sessions: list[MemorySession] = field(default_factory=list)

    async def connect(
        self,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        attach: tuple[int, bytes] | None = None,
        last_zxid: int = 0,
    ) -> Session:
        """Return a connected session; see `barnabas_controller.zookeeper.session.Connect`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + connection_timeout_ms / 1000
        await asyncio.sleep(2 * self.server.latency)
        while not self.is_served(last_zxid):
            remaining = deadline - loop.time()
            if remaining <= 0:
                what = f"{self.name}: ZooKeeper did not answer within {connection_timeout_ms} ms"
                raise self.why_unreachable(what, last_zxid)
            await asyncio.sleep(min(_RETRY_SECONDS, remaining))
        record = self.server.open_session(session_timeout_ms / 1000, attach)
        session = MemorySession(self, self.server, record.session_id, record.password, last_zxid)
        self.sessions.append(session)
        self.server.attach(record, session)
        return session

    def is_served(self, last_zxid: int) -> bool:
        """Whether the server takes sessions of this process; one that is behind takes none."""
        return self.reachable and self.server.running and self.server.tree.zxid >= last_zxid

    def why_unreachable(self, what: str, last_zxid: int) -> ZooKeeperUnreachable:
        """Why it does not."""
        answers = self.reachable and self.server.running
        return unreachable(what, self.server.tree.zxid if answers else None, last_zxid)

    def disconnect(self) -> None:
        """Disconnect this process from ZooKeeper until `reconnect`."""
        self.reachable = False
        for session in list(self.sessions):
            session.lose_connection()

    def reconnect(self) -> None:
        """Undo `disconnect`: the sessions reconnect, or find out that they have expired."""
        self.reachable = True
        for session in list(self.sessions):
            session.reconnect_soon()

    def fall_silent(self) -> None:
        """Stop the heartbeats of a process that is suspended; its sessions expire in time."""
        for session in list(self.sessions):
            self.server.miss_heartbeats(session)

    def speak_again(self) -> None:
        """Undo `fall_silent`: sessions that have not expired continue."""
        for session in list(self.sessions):
            self.server.hear(session)

    def crash(self) -> None:
        """End the process: its sessions send no heartbeats and call no listeners any more."""
        for session in list(self.sessions):
            session.abandon()
        self.sessions.clear()


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
        self.observers: list[Callable[[list[WatchEvent]], None]] = []
        """Called with every change when it is made, before any watch."""
        self._wall_ms = wall_ms
        self._context = Context()  # its own, so that no client's death removes its timers
        self._sessions: dict[int, ServerSession] = {}
        self._opened = 0
        self._clients: dict[str, MemoryClient] = {}
        self._watches: dict[tuple[WatchKind, str], dict[Watching, None]] = {}
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

    def start(self) -> None:
        """Start again with all data; every session has its whole timeout to reconnect."""
        self.running = True
        for record in list(self._sessions.values()):
            self._await_expiry(record)
        for client in self._clients.values():
            for session in list(client.sessions):
                session.reconnect_soon()

    def copy(self) -> "ZooKeeperCopy":
        """A copy of the data directory, as a backup takes it."""
        sessions = {i: (r.password, r.timeout) for i, r in self._sessions.items()}
        return ZooKeeperCopy(deepcopy(self.tree), sessions)

    def restore(self, copy: "ZooKeeperCopy") -> None:
        """Put a copy back, while the server is stopped: what came after it is gone."""
        assert not self.running
        self.tree = deepcopy(copy.tree)
        self._watches.clear()
        self._sessions = {
            session_id: ServerSession(session_id, password, timeout)
            for session_id, (password, timeout) in copy.sessions.items()
        }

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
        self.tree.changed = []
        if sequential:
            self.tree.create_sequential(Create(path, data), 0, self.now_ms())
        else:
            exists = self.tree.find(path) is not None
            operation = SetData(path, data) if exists else Create(path, data)
            self.tree.apply(operation, 0, self.now_ms())
        if self.on_write is not None:
            self.on_write([event.path for event in self.tree.changed])
        self._fire(self.tree.changed)

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
        session.connected(
            Link(self.latency, self.handle, self._context),
            Link(self.latency, session.receive, session.context),
        )

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
        for watching in self._watches.values():
            for watch in [w for w in watching if w.session.session_id == record.session_id]:
                del watching[watch]
        self.tree.delete_ephemerals(record.session_id)
        self._fire(self.tree.changed)
        if record.holder is not None:
            record.holder.lose_connection()

    # Requests

    def handle(self, message: object) -> None:
        """Carry out a request that arrived over a link."""
        assert isinstance(message, Request)
        if message.session.session_id not in self._sessions:
            return  # sent before its session expired
        session, fault = message.session, message.session.fault
        hit = fault is not None and message.path.startswith(fault.path_prefix)
        if fault is not None and hit:
            session.fault = None
            if not fault.applied:
                session.lose_connection()
                return
        reply = self._answer(message)
        if self.on_write is not None and self.tree.changed:
            self.on_write([event.path for event in self.tree.changed])
        if hit:
            session.lose_connection()
        elif session.link is not None:
            session.link.deliver(reply)

    def _answer(self, request: Request) -> Reply:
        session_id = request.session.session_id
        if request.closes_session:
            record = self._sessions[session_id]
            record.holder = None
            self._end(record)
            return Reply(request, None, None)
        self.tree.changed = []
        try:
            result = request.apply(self.tree, session_id, self.now_ms())
        except ZooKeeperError as error:
            if not request.watches_missing(error):
                return Reply(request, None, error)
            result = None
        self._fire(self.tree.changed)
        if request.watch is not None:
            request.watching = self._arm(request.session, request.kind, request.path, request.watch)
        return Reply(request, result, None)

    # Watches

    def _arm(
        self, session: MemorySession, kind: WatchKind, path: str, watch: Watch
    ) -> Watching | None:
        """Arm a watch; returns None if the same watch is already armed there."""
        watching = self._watches.setdefault((kind, path), {})
        if any(w.session is session and w.watch == watch for w in watching):
            return None
        armed = Watching(session, kind, path, watch)
        watching[armed] = None
        return armed

    def disarm(self, watching: Watching) -> None:
        """Remove a watch whose reply never reached the client."""
        self._watches.get((watching.kind, watching.path), {}).pop(watching, None)

    def _fire(self, events: list[WatchEvent]) -> None:
        if events:
            for observe in self.observers:
                observe(events)
        for event in events:
            for kind in _FIRES[event.type]:
                for watching in self._watches.pop((kind, event.path), {}):
                    watching.session.send_event(Event(watching, event))


def _memory(session: Session) -> MemorySession:
    if not isinstance(session, MemorySession):
        raise TypeError(f"not a session of the in-memory ZooKeeper: {session!r}")
    return session

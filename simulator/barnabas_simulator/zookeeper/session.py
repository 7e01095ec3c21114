"""The client's side of the in-memory ZooKeeper: a session, its requests, and its links."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from barnabas_controller.zookeeper.session import (
    ANY_VERSION,
    EXPIRED_AT_SERVER,
    ConnectionLoss,
    Create,
    Delete,
    NoNode,
    Operation,
    OperationResult,
    SessionExpired,
    SetData,
    Stat,
    State,
    Watch,
    WatchEvent,
    ZooKeeperError,
    ZooKeeperUnreachable,
    check_path,
    check_size,
)

from barnabas_simulator.zookeeper.tree import Tree

logger = logging.getLogger(__name__)

_RECONNECT_SECONDS = 0.1
_FINAL = (State.EXPIRED, State.CLOSED)


class WatchKind(Enum):
    DATA = "data"
    CHILDREN = "children"


@dataclass(eq=False)
class Watching:
    """An armed watch; `acknowledged` once the client has received the reply that armed it."""

    session: "MemorySession"
    kind: WatchKind
    path: str
    watch: Watch
    acknowledged: bool = False


@dataclass(eq=False)
class Request:
    """A request: `apply` is run on the tree, with the session's id and the wall clock in ms."""

    session: "MemorySession"
    path: str
    apply: Callable[[Tree, int, int], Any]
    future: asyncio.Future[Any]
    watch: Watch | None = None
    kind: WatchKind = WatchKind.DATA
    watch_if_missing: bool = False
    reads: bool = False
    closes_session: bool = False
    watching: Watching | None = None

    def watches_missing(self, error: ZooKeeperError) -> bool:
        """Whether this is `exists` of a missing node, which is no error."""
        return self.watch_if_missing and isinstance(error, NoNode)


@dataclass(frozen=True)
class Reply:
    request: Request
    result: Any
    error: ZooKeeperError | None
    zxid: int


@dataclass(frozen=True)
class Event:
    watching: Watching
    event: WatchEvent


@dataclass(frozen=True)
class Fault:
    """Breaks the connection at the next request whose path has this prefix."""

    path_prefix: str
    applied: bool


@dataclass(eq=False)
class Link:
    """One direction of a connection: in order, `latency` seconds later, and nothing once cut.

    The receiver runs in its own `context`, so that the tasks it starts belong to its process.
    """

    latency: float
    receiver: Callable[[object], None]
    context: Context
    _messages: deque[object] = field(default_factory=deque)

    def deliver(self, message: object) -> None:
        self._messages.append(message)
        asyncio.get_running_loop().call_later(self.latency, self._arrive, context=self.context)

    def _arrive(self) -> None:
        if self._messages:
            self.receiver(self._messages.popleft())

    def cut(self) -> list[object]:
        """Drop what is in flight, and return it."""
        lost = list(self._messages)
        self._messages.clear()
        return lost


class Server(Protocol):
    """What a session asks of the server, in addition to its requests."""

    running: bool
    tree: Tree

    def zxid_of(self, session: "MemorySession") -> int:
        """Return the newest transaction of the server that the session is connected to."""
        ...

    def reattach(self, session: "MemorySession") -> None: ...

    def lost(self, session: "MemorySession") -> None: ...

    def disarm(self, watching: Watching) -> None: ...


class Process(Protocol):
    """The process that opened a session, and its way to the server."""

    name: str
    reachable: bool
    sessions: "list[MemorySession]"

    def is_served(self, last_zxid: int) -> bool: ...

    def why_unreachable(self, what: str, last_zxid: int) -> ZooKeeperUnreachable: ...


class MemorySession:
    """One session of one process; satisfies `Session`."""

    def __init__(
        self,
        client: Process,
        server: Server,
        session_id: int,
        password: bytes,
        last_zxid: int = 0,
    ) -> None:
        self.last_zxid = last_zxid
        self.fault: Fault | None = None
        self.link: Link | None = None  # from the server; None without a connection
        self.context = copy_context()  # of the process that opened it
        self._client = client
        self._server = server
        self._id = session_id
        self._password = password
        self._state = State.SUSPENDED
        self._listeners: list[Callable[[State], None]] = []
        self._to_server: Link | None = None
        self._waiting: deque[Request] = deque()
        self._in_flight: dict[Request, None] = {}
        self._missed: list[Event] = []

    @property
    def host(self) -> str:
        return self._client.name.partition("/")[0]

    @property
    def has_missed_events(self) -> bool:
        return bool(self._missed)

    @property
    def session_id(self) -> int:
        return self._id

    @property
    def password(self) -> bytes:
        return self._password

    @property
    def state(self) -> State:
        return self._state

    @property
    def end_cause(self) -> str:
        return EXPIRED_AT_SERVER

    def on_state(self, listener: Callable[[State], None]) -> None:
        self._listeners.append(listener)

    # The connection

    def connected(self, to_server: Link, from_server: Link) -> None:
        """Use a new connection; missed events are delivered before new ones."""
        self._to_server, self.link = to_server, from_server
        for event in self._missed:
            from_server.deliver(event)
        self._missed = []
        self._change(State.CONNECTED)

    def lose_connection(self) -> None:
        """Break the connection: requests and replies in flight are lost, events are kept."""
        if self._to_server is None or self.link is None:
            return
        # The replies to heartbeats carry it.
        self.last_zxid = max(self.last_zxid, self._server.zxid_of(self))
        self._to_server.cut()
        for message in self.link.cut():
            if isinstance(message, Event) and message.watching.acknowledged:
                self._missed.append(message)
        self._to_server = self.link = None
        for request in self._in_flight:
            if request.watching is not None:
                self._server.disarm(request.watching)
        self._server.lost(self)
        asyncio.get_running_loop().call_soon(self._notice_loss, context=self.context)

    def _notice_loss(self) -> None:
        self._fail(self._in_flight, ConnectionLoss, "the connection broke")
        self._change(State.SUSPENDED)
        self.reconnect_soon()

    def reconnect_soon(self) -> None:
        """Try again after a client's usual delay."""
        if self._state is State.SUSPENDED:
            asyncio.get_running_loop().call_later(
                _RECONNECT_SECONDS, self._reconnect, context=self.context
            )

    def _reconnect(self) -> None:
        if self._state is not State.SUSPENDED:
            return
        if self._client.is_served(self.last_zxid):
            self._server.reattach(self)
        elif self._client.reachable and self._server.running:  # refused, for the server is behind
            self.reconnect_soon()

    async def diagnose(self) -> ZooKeeperUnreachable:
        what = f"{self._client.name}: ZooKeeper does not answer"
        return self._client.why_unreachable(what, self.last_zxid)

    def expired(self) -> None:
        """End the session because a server reported that it has expired."""
        self._change(State.EXPIRED)

    def abandon(self) -> None:
        """End the session with its process: no listener is called, but what was sent arrives."""
        self._listeners.clear()
        self._waiting.clear()
        self._in_flight.clear()
        if self.link is not None:
            self.link.cut()
        self._to_server = self.link = None
        self._state = State.CLOSED
        self._server.lost(self)

    def _change(self, state: State) -> None:
        if state is self._state or self._state in _FINAL:
            return
        logger.info("%s: session %#x: %s", self._client.name, self._id, state.value)
        self._state = state
        if state in _FINAL:
            self._fail(self._waiting, SessionExpired, "the session is over")
            if self in self._client.sessions:
                self._client.sessions.remove(self)
        for listener in list(self._listeners):
            listener(state)
        self._send_waiting()

    def _fail(
        self,
        requests: deque[Request] | dict[Request, None],
        error: type[ZooKeeperError],
        reason: str,
    ) -> None:
        failed = list(requests)
        requests.clear()
        for request in failed:
            if not request.future.done():
                request.future.set_exception(error(f"{request.path}: {reason}"))

    # Messages

    def send_event(self, event: Event) -> None:
        """Deliver an event from the server, or keep it while there is no connection."""
        if self.link is not None:
            self.link.deliver(event)
        else:
            self._missed.append(event)

    def receive(self, message: object) -> None:
        """Accept a reply or a watch event."""
        if isinstance(message, Event):
            if self._state not in _FINAL:
                message.watching.watch(message.event)
            return
        assert isinstance(message, Reply)
        self.last_zxid = max(self.last_zxid, message.zxid)
        request = message.request
        self._in_flight.pop(request, None)
        if request.watching is not None:
            request.watching.acknowledged = True
        if request.future.done():
            return
        if message.error is not None:
            request.future.set_exception(message.error)
        else:
            request.future.set_result(message.result)

    async def _ask(self, path: str, apply: Callable[[Tree, int, int], Any], **options: Any) -> Any:
        """Send a request with these fields, and wait for its result."""
        if not path.startswith("/") or (path.endswith("/") and path != "/") or "//" in path:
            raise ValueError(f"not a path of a znode: {path!r}")
        check_path(path)
        if self._state in _FINAL:
            raise SessionExpired(f"{path}: the session is over")
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(Request(self, path, apply, future, **options))
        self._send_waiting()
        return await future

    def _send_waiting(self) -> None:
        while self._waiting and self._state is State.CONNECTED and self._to_server is not None:
            request = self._waiting.popleft()
            if not request.future.done():  # otherwise its caller was cancelled
                self._in_flight[request] = None
                self._to_server.deliver(request)

    # Operations

    async def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        operation = Create(path, data or b"", ephemeral)
        check_size([operation])
        apply = Tree.create_sequential if sequential else Tree.apply
        created: str = await self._ask(path, lambda tree, *by: apply(tree, operation, *by))
        return created

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        def read(tree: Tree, _owner: int, _now: int) -> tuple[bytes, Stat]:
            node = tree.node(path)
            return node.data, node.stat

        found: tuple[bytes, Stat] = await self._ask(path, read, watch=watch, reads=True)
        return found

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        stat: Stat | None = await self._ask(
            path,
            lambda tree, *_: tree.node(path).stat,
            watch=watch,
            watch_if_missing=True,
            reads=True,
        )
        return stat

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        names: list[str] = await self._ask(
            path,
            lambda tree, *_: sorted(tree.node(path).children),
            watch=watch,
            kind=WatchKind.CHILDREN,
            reads=True,
        )
        return names

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        operation = SetData(path, data or b"", version)
        check_size([operation])
        stat: Stat = await self._ask(path, lambda tree, *by: tree.apply(operation, *by))
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        operation = Delete(path, version)
        await self._ask(path, lambda tree, *by: tree.apply(operation, *by))

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        if not operations:
            return []
        check_size(operations)
        results: list[OperationResult] = await self._ask(
            operations[0].path, lambda tree, *by: tree.multi(operations, *by)
        )
        return results

    async def close(self) -> None:
        if self._state in _FINAL:
            return
        connection = self._to_server
        self._change(State.CLOSED)
        if connection is None:  # do not wait for a server that does not answer
            return
        future = asyncio.get_running_loop().create_future()
        request = Request(self, "/", lambda *_: None, future, closes_session=True)
        self._in_flight[request] = None
        connection.deliver(request)
        try:
            await future
        except ConnectionLoss:
            logger.info("%s: session %#x: its end was not confirmed", self._client.name, self._id)
        self._to_server = self.link = None

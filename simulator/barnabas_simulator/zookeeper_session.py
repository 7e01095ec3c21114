"""The client's side of the in-memory ZooKeeper: a session, its requests, the links they take."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

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
    check_size,
)

from barnabas_simulator.zookeeper_tree import Tree

if TYPE_CHECKING:
    from barnabas_simulator.zookeeper import MemoryClient

logger = logging.getLogger(__name__)

_RECONNECT_SECONDS = 0.1
_FINAL = (State.EXPIRED, State.CLOSED)


class WatchKind(Enum):
    DATA = "data"
    CHILDREN = "children"


@dataclass(eq=False)
class Watching:
    """An armed watch; `acknowledged` once the client knows that it is armed."""

    session: "MemorySession"
    kind: WatchKind
    path: str
    watch: Watch
    acknowledged: bool = False


@dataclass(eq=False)
class Request:
    """What a client asks: `apply` is run on the tree, with the session's id and the wall clock."""

    session: "MemorySession"
    path: str
    apply: Callable[[Tree, int, int], Any]
    future: asyncio.Future[Any]
    watch: Watch | None = None
    kind: WatchKind = WatchKind.DATA
    watch_if_missing: bool = False
    closes_session: bool = False
    watching: Watching | None = None

    def watches_missing(self, error: ZooKeeperError) -> bool:
        """`exists` of a missing node is no error."""
        return self.watch_if_missing and isinstance(error, NoNode)


@dataclass(frozen=True)
class Reply:
    request: Request
    result: Any
    error: ZooKeeperError | None


@dataclass(frozen=True)
class Event:
    watching: Watching
    event: WatchEvent


@dataclass(frozen=True)
class Fault:
    """Breaks the connection at the next request whose path begins so."""

    path_prefix: str
    applied: bool


@dataclass(eq=False)
class Link:
    """One direction of a connection: in order, `latency` seconds later, or never once cut.

    The receiver runs in its own `context`, so that what it starts belongs to its own process.
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
        """What is still under way is lost, and returned."""
        lost = list(self._messages)
        self._messages.clear()
        return lost


class MemorySession:
    """One session of one `MemoryClient`; satisfies `Session`."""

    def __init__(self, client: "MemoryClient", session_id: int, password: bytes) -> None:
        self.fault: Fault | None = None
        self.link: Link | None = None  # from the server; None without a connection
        self.context = copy_context()  # of the process that opened it
        self._client = client
        self._server = client.server
        self._id = session_id
        self._password = password
        self._state = State.SUSPENDED
        self._listeners: list[Callable[[State], None]] = []
        self._to_server: Link | None = None
        self._waiting: deque[Request] = deque()
        self._in_flight: dict[Request, None] = {}
        self._missed: list[Event] = []

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
        """A server accepted the session; what was missed comes before anything new."""
        self._to_server, self.link = to_server, from_server
        for event in self._missed:
            from_server.deliver(event)
        self._missed = []
        self._change(State.CONNECTED)

    def lose_connection(self) -> None:
        """What is under way is lost: requests not applied, replies not seen, events kept."""
        if self._to_server is None or self.link is None:
            return
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
        """Try again after the delay of a client that lost its server."""
        if self._state is State.SUSPENDED:
            asyncio.get_running_loop().call_later(
                _RECONNECT_SECONDS, self._reconnect, context=self.context
            )

    def _reconnect(self) -> None:
        possible = self._client.reachable and self._server.running
        if self._state is State.SUSPENDED and possible:
            self._server.reattach(self)

    def expired(self) -> None:
        """A server said so."""
        self._change(State.EXPIRED)

    def abandon(self) -> None:
        """The process died: nobody is told anything any more, but what it sent still arrives."""
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
        """Called by the server; kept for later while there is no connection."""
        if self.link is not None:
            self.link.deliver(event)
        else:
            self._missed.append(event)

    def receive(self, message: object) -> None:
        """A reply or a watch event arrived."""
        if isinstance(message, Event):
            if self._state not in _FINAL:
                message.watching.watch(message.event)
            return
        assert isinstance(message, Reply)
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

    def _request(self, path: str, apply: Callable[[Tree, int, int], Any]) -> Request:
        if not path.startswith("/") or (path.endswith("/") and path != "/") or "//" in path:
            raise ValueError(f"not a path of a znode: {path!r}")
        return Request(self, path, apply, asyncio.get_running_loop().create_future())

    async def _ask(self, request: Request) -> Any:
        if self._state in _FINAL:
            raise SessionExpired(f"{request.path}: the session is over")
        self._waiting.append(request)
        self._send_waiting()
        return await request.future

    def _send_waiting(self) -> None:
        while self._waiting and self._state is State.CONNECTED and self._to_server is not None:
            request = self._waiting.popleft()
            if not request.future.done():  # else its caller was cancelled
                self._in_flight[request] = None
                self._to_server.deliver(request)

    # Operations

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        operation = Create(path, data, ephemeral)
        check_size([operation])
        if sequential:
            request = self._request(path, lambda t, o, now: t.create_sequential(operation, o, now))
        else:
            request = self._request(path, lambda t, o, now: t.apply(operation, o, now))
        created: str = await self._ask(request)
        return created

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        def read(tree: Tree, _owner: int, _now: int) -> tuple[bytes, Stat]:
            node = tree.node(path)
            return node.data, node.stat

        request = self._request(path, read)
        request.watch = watch
        found: tuple[bytes, Stat] = await self._ask(request)
        return found

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        request = self._request(path, lambda tree, _owner, _now: tree.node(path).stat)
        request.watch, request.watch_if_missing = watch, True
        stat: Stat | None = await self._ask(request)
        return stat

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        request = self._request(path, lambda tree, _owner, _now: sorted(tree.node(path).children))
        request.watch, request.kind = watch, WatchKind.CHILDREN
        names: list[str] = await self._ask(request)
        return names

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        operation = SetData(path, data, version)
        check_size([operation])
        stat: Stat = await self._ask(
            self._request(path, lambda tree, owner, now: tree.apply(operation, owner, now))
        )
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        operation = Delete(path, version)
        await self._ask(
            self._request(path, lambda tree, owner, now: tree.apply(operation, owner, now))
        )

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        if not operations:
            return []
        check_size(operations)
        path = operations[0].path
        results: list[OperationResult] = await self._ask(
            self._request(path, lambda tree, owner, now: tree.multi(operations, owner, now))
        )
        return results

    async def close(self) -> None:
        if self._state in _FINAL:
            return
        connection = self._to_server
        self._change(State.CLOSED)
        if connection is None:  # nothing waits for a server that does not answer
            return
        request = self._request("/", lambda _tree, _owner, _now: None)
        request.closes_session = True
        self._in_flight[request] = None
        connection.deliver(request)
        try:
            await request.future
        except ConnectionLoss:
            logger.info("%s: session %#x: its end was not confirmed", self._client.name, self._id)
        self._to_server = self.link = None

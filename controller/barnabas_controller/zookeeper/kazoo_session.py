"""A ZooKeeper session over kazoo, which only this module and `kazoo_protocol` import.

Kazoo communicates with the servers on its own thread. That one thread posts replies, watch events
and changes of state to the event loop, which therefore receives them in the server's order. Kazoo
would open a new session after one has expired, and drops the watches when a connection is lost.
This module prevents both.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from barnabas_controller.zookeeper.kazoo_protocol import (
    InlineHandler,
    SetWatches,
    Watcher,
    check_address,
    multi_results,
    stat_of,
    translate,
)
from barnabas_controller.zookeeper.requests import until_answered
from barnabas_controller.zookeeper.server_zxid import server_zxid
from barnabas_controller.zookeeper.session import (
    ANY_VERSION,
    EXPIRED_AT_SERVER,
    Check,
    Connect,
    ConnectionLoss,
    Create,
    Delete,
    NodeExists,
    Operation,
    OperationResult,
    Session,
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
    unreachable,
)
from barnabas_controller.zookeeper.watchdog import LoopWatchdog

logger = logging.getLogger(__name__)
# Kazoo warns of every attempt to reconnect; the session logs each change of state once.
kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
kazoo_logger.setLevel(logging.ERROR)

_FINAL = (State.EXPIRED, State.CLOSED)
# Kazoo wakes its thread with one byte per request through a socket pair. Its buffer has room for a
# few hundred; beyond that the event loop would block.
_MAX_IN_FLIGHT = 100
_CLOSE_SECONDS = 2.0


def connect_kazoo(hosts_with_chroot: str) -> Connect:
    """Open sessions of the ensemble `host:port,host:port/chroot`; a missing chroot is created.

    Raises ZooKeeperError if the text is something else.
    """
    hosts, _, chroot = hosts_with_chroot.partition("/")
    prefix = f"/{chroot}".rstrip("/")
    check_address(hosts_with_chroot)

    async def connect(
        session_timeout_ms: int,
        connection_timeout_ms: int,
        attach: tuple[int, bytes] | None = None,
        last_zxid: int = 0,
    ) -> Session:
        session = KazooSession(hosts, prefix, session_timeout_ms, attach, last_zxid)
        await session.open(connection_timeout_ms)
        return session

    return connect


@dataclass(eq=False)
class _Request:
    """A request to kazoo, and the future of its result."""

    path: str
    submit: Callable[[], Any]  # returns kazoo's AsyncResult
    future: asyncio.Future[Any]
    watcher: Watcher | None


class KazooSession:
    """One session, opened by `connect_kazoo`; `chroot` is empty or begins with a slash."""

    def __init__(
        self,
        hosts: str,
        chroot: str,
        session_timeout_ms: int,
        attach: tuple[int, bytes] | None,
        last_zxid: int,
    ) -> None:
        self._hosts = hosts
        self._chroot = chroot
        self._attach = attach
        self._loop = asyncio.get_running_loop()
        self._client = KazooClient(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            client_id=attach,
            # Even if one attempt to connect fails slowly, the session outlives the next.
            handler=InlineHandler(session_timeout_ms / 1000 / max(2, len(hosts.split(",")))),
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5),
            logger=kazoo_logger,
        )
        self._client.last_zxid = last_zxid  # sent when connecting: servers behind it refuse
        self._last_zxid = last_zxid
        self._client.add_listener(self._kazoo_changed)
        self._kept_watchers: tuple[Any, Any] = ({}, {})
        self._id_and_password = attach or (0, b"")
        self._state = State.SUSPENDED
        self._end_cause = EXPIRED_AT_SERVER
        self._listeners: list[Callable[[State], None]] = []
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._waiting: deque[_Request] = deque()
        self._in_flight: dict[_Request, None] = {}
        self._watchdog = LoopWatchdog(session_timeout_ms / 1000, self._post, self._give_up)
        self._stop_begun = threading.Lock()
        self._stopped = asyncio.Event()

    # Opening and closing

    async def open(self, connection_timeout_ms: int) -> None:
        """Connect, and create the chroot; see `Connect` for what it raises."""
        try:
            async with asyncio.timeout(connection_timeout_ms / 1000):
                self._client.start_async()  # starts a thread; the connecting is done there
                await self._connected
                await self._create_chroot()
            self._watchdog.start()
        except BaseException as error:
            await self._end(State.CLOSED, wait=self._client.connected)
            if isinstance(error, TimeoutError):
                within = f" within {connection_timeout_ms} ms"
                raise await self._why_unreachable(within) from None
            raise

    async def diagnose(self) -> ZooKeeperUnreachable:
        return await self._why_unreachable("")

    async def _why_unreachable(self, within: str) -> ZooKeeperUnreachable:
        what = f"no ZooKeeper server at {self._hosts} answered{within}"
        return unreachable(what, await server_zxid(self._hosts), self.last_zxid)

    async def _create_chroot(self) -> None:
        if not self._chroot or await until_answered(partial(self.exists, "/")) is not None:
            return
        for depth in range(self._chroot.count("/")):
            path = "/".join(self._chroot.split("/")[: depth + 2])
            create = partial(self._client.create_async, path)
            with suppress(NodeExists):
                await until_answered(partial(self._ask, path, create))

    async def close(self) -> None:
        if self._state not in _FINAL:
            await self._end(State.CLOSED, wait=self._state is State.CONNECTED)

    async def _end(self, state: State, wait: bool) -> None:
        """End the session; if no server confirms that in time, the session will expire there."""
        self._change(state)
        self._begin_stop()
        if wait:
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._stopped.wait()
            except TimeoutError:
                logger.warning("session %#x: no server confirmed its end", self.session_id)
        self._fail(self._in_flight, ConnectionLoss)

    def _begin_stop(self) -> None:
        """Stop kazoo on another thread, because that blocks until a connection attempt ends."""
        if self._stop_begun.acquire(blocking=False):
            threading.Thread(target=self._stop_kazoo, name="kazoo-stop", daemon=True).start()

    def _stop_kazoo(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception:
            logger.warning("stopping kazoo failed", exc_info=True)
        finally:
            self._post(self._stopped.set)

    # On kazoo's thread

    def _post(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the loop is closed
            logger.debug("event loop closed; not delivered: %s", callback)

    def _give_up(self, stalled_seconds: float) -> None:
        """Called on the watchdog's thread: end the session, because the event loop is blocked."""
        logger.error(
            "session %#x: given up, the event loop has not run for %.1f s",
            self.session_id,
            stalled_seconds,
        )
        self._end_cause = (
            "the ZooKeeper session was given up by the broker:"
            f" the event loop had not run for {stalled_seconds:.1f} s"
        )
        self._begin_stop()
        self._post(self._change, State.EXPIRED)

    def _kazoo_changed(self, kazoo_state: str) -> None:
        self._last_zxid = self.last_zxid  # kazoo forgets it when a session ends
        if kazoo_state == KazooState.CONNECTED:
            self._restore_watches()
            self._post(self._on_connected, self._client.client_id)
        elif kazoo_state == KazooState.SUSPENDED:
            client = self._client
            self._kept_watchers = (client._data_watchers, client._child_watchers)
            self._post(self._change, State.SUSPENDED)
        else:
            self._begin_stop()  # before kazoo opens a new session
            self._post(self._change, State.EXPIRED)

    def _restore_watches(self) -> None:
        """Make the server fire the watches of changed znodes and keep the others.

        This must be the first request on the new connection, because an earlier read could return a
        change that a watch has not reported yet.
        """
        client, (data, children) = self._client, self._kept_watchers
        self._kept_watchers = ({}, {})
        for request in reversed(SetWatches.since(client.last_zxid, data, children)):
            client._queue.appendleft((request, client.handler.async_result()))
            client._connection._write_sock.send(b"\0")
        for path, watchers in data.items():
            client._data_watchers[path] |= watchers
        for path, watchers in children.items():
            client._child_watchers[path] |= watchers

    # On the event loop: state

    @property
    def session_id(self) -> int:
        return self._id_and_password[0]

    @property
    def password(self) -> bytes:
        return self._id_and_password[1]

    @property
    def state(self) -> State:
        return self._state

    @property
    def end_cause(self) -> str:
        return self._end_cause

    @property
    def last_zxid(self) -> int:
        zxid: int = self._client.last_zxid
        return max(self._last_zxid, zxid)

    def on_state(self, listener: Callable[[State], None]) -> None:
        self._listeners.append(listener)

    def _on_connected(self, id_and_password: tuple[int, bytes]) -> None:
        if self._connected.done():
            if id_and_password[0] == self.session_id:
                self._change(State.CONNECTED)
            return
        if self._attach and id_and_password[0] != self._attach[0]:
            # Kazoo opens a new session after a refusal; `open` closes it.
            self._connected.set_exception(
                SessionExpired(f"the session {self._attach[0]:#x} is over, or another's")
            )
            return
        self._id_and_password = id_and_password
        self._change(State.CONNECTED)
        self._connected.set_result(None)

    def _change(self, state: State) -> None:
        if state is self._state or self._state in _FINAL:
            return
        logger.info("session %#x: %s", self.session_id, state.value)
        self._state = state
        if state is State.EXPIRED:
            self._fail(self._in_flight, SessionExpired)
        if state in _FINAL:
            self._watchdog.stop()
            self._fail(self._waiting, SessionExpired)
        for listener in list(self._listeners):
            listener(state)
        self._pump()

    def _fail(
        self, requests: deque[_Request] | dict[_Request, None], error: type[ZooKeeperError]
    ) -> None:
        failed = list(requests)
        requests.clear()
        for request in failed:
            if not request.future.done():
                request.future.set_exception(error(f"{request.path}: the session is over"))

    # On the event loop: requests

    async def _ask(
        self, path: str, submit: Callable[[], Any], watcher: Watcher | None = None
    ) -> Any:
        check_path(path)
        if self._state in _FINAL:
            raise SessionExpired(f"{path}: the session is over")
        request = _Request(path, submit, self._loop.create_future(), watcher)
        self._waiting.append(request)
        self._pump()
        return await request.future

    def _pump(self) -> None:
        while (
            self._waiting
            and self._state is State.CONNECTED
            and len(self._in_flight) < _MAX_IN_FLIGHT
        ):
            request = self._waiting.popleft()
            if request.future.done():  # its caller was cancelled
                continue
            try:
                result = request.submit()
            except (TypeError, ValueError) as error:  # an illegal path
                request.future.set_exception(error)
                continue
            self._in_flight[request] = None
            result.rawlink(partial(self._answered, request))

    def _answered(self, request: _Request, result: Any) -> None:
        if request.watcher is not None:
            request.watcher.missing = result.value is None
        self._post(self._done, request, result)

    def _done(self, request: _Request, result: Any) -> None:
        if request not in self._in_flight:  # kazoo may report a failure twice
            return
        del self._in_flight[request]
        if not request.future.done():
            if result.exception is None:
                request.future.set_result(result.value)
            else:
                request.future.set_exception(translate(result.exception, request.path))
        self._pump()

    # On the event loop: watches

    def _watcher(self, watch: Watch | None) -> Watcher | None:
        return None if watch is None else Watcher(watch, self._deliver)

    def _deliver(self, watch: Watch, event: WatchEvent) -> None:
        """Called on kazoo's thread; post the event, its path without the chroot."""
        path = event.path.removeprefix(self._chroot) or "/"
        self._post(self._fire, watch, WatchEvent(event.type, path))

    def _fire(self, watch: Watch, event: WatchEvent) -> None:
        if self._state not in _FINAL:
            watch(event)

    # Operations

    def _full(self, path: str) -> str:
        return self._chroot + path if path != "/" else self._chroot or "/"

    async def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        check_size([Create(path, data or b"")])
        submit = partial(
            self._client.create_async,
            self._full(path),
            data,
            ephemeral=ephemeral,
            sequence=sequential,
        )
        created: str = await self._ask(path, submit)
        return created.removeprefix(self._chroot)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        watcher = self._watcher(watch)
        submit = partial(self._client.get_async, self._full(path), watcher)
        data, stat = await self._ask(path, submit)
        return data or b"", stat_of(stat)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        watcher = self._watcher(watch)
        submit = partial(self._client.exists_async, self._full(path), watcher)
        stat = await self._ask(path, submit, watcher)
        return None if stat is None else stat_of(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        watcher = self._watcher(watch)
        submit = partial(self._client.get_children_async, self._full(path), watcher)
        return sorted(await self._ask(path, submit))

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        check_size([SetData(path, data or b"")])
        submit = partial(self._client.set_async, self._full(path), data, version)
        return stat_of(await self._ask(path, submit))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._ask(path, partial(self._client.delete_async, self._full(path), version))

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        if not operations:
            return []
        check_size(operations)
        answers = await self._ask(operations[0].path, partial(self._commit, operations))
        return multi_results(operations, answers, self._chroot)

    def _commit(self, operations: Sequence[Operation]) -> Any:
        transaction = self._client.transaction()
        for operation in operations:
            path = self._full(operation.path)
            match operation:
                case Create(_, data, ephemeral, sequential):
                    transaction.create(path, data, None, ephemeral, sequential)
                case Delete():
                    transaction.delete(path, operation.version)
                case SetData():
                    transaction.set_data(path, operation.data, operation.version)
                case Check():
                    transaction.check(path, operation.version)
        return transaction.commit_async()

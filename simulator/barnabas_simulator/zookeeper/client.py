"""A process's way to the in-memory ZooKeeper, and its sessions there."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from barnabas_controller.zookeeper.session import (
    Session,
    ZooKeeperUnreachable,
    unreachable,
)

from barnabas_simulator.zookeeper.lagging import LaggingServer
from barnabas_simulator.zookeeper.session import MemorySession, Server

_RETRY_SECONDS = 0.1


@dataclass(eq=False)
class ServerSession:
    """A session at the server: the client's side that holds it now, and when it will expire."""

    session_id: int
    password: bytes
    timeout: float
    holder: MemorySession | None = None
    behind: LaggingServer | None = None  # the server that the client is connected to, if it lags
    expiry: asyncio.TimerHandle | None = None


class Servers(Server, Protocol):
    """What a process asks of the ensemble."""

    latency: float

    def open_session(self, timeout: float, attach: tuple[int, bytes] | None) -> ServerSession: ...

    def attach(self, record: ServerSession, session: MemorySession) -> None: ...

    async def opened(self, record: ServerSession) -> None: ...

    def miss_heartbeats(self, session: MemorySession) -> None: ...

    def hear(self, session: MemorySession) -> None: ...


@dataclass(eq=False)
class MemoryClient:
    """One process's way to ZooKeeper; `connect` is a `Connect`."""

    server: Servers
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
        if attach is None:
            await self.server.opened(record)
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

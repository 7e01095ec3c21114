"""The two ZooKeepers under test, behind one set of handles: real (embedded) and in memory."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from barnabas_broker.local.zookeeper_server import EmbeddedZooKeeper
from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import Session, State, WatchEvent
from barnabas_simulator.zookeeper import MemoryZooKeeper

SESSION_TIMEOUT_MS = 4000
CONNECTION_TIMEOUT_MS = 3000


class Ensemble(Protocol):
    """A ZooKeeper with an empty tree of its own for one test."""

    async def session(self, attach: tuple[int, bytes] | None = None) -> Session: ...

    async def unreachable(self, connection_timeout_ms: int) -> Session:
        """Try to connect where nobody answers."""
        ...

    async def stop(self) -> None:
        """All connections break; the data and the sessions stay."""
        ...

    async def start(self) -> None: ...


@dataclass
class RealEnsemble:
    server: EmbeddedZooKeeper
    chroot: str

    async def session(self, attach: tuple[int, bytes] | None = None) -> Session:
        connect = connect_kazoo(self.server.connect_string + self.chroot)
        return await connect(SESSION_TIMEOUT_MS, CONNECTION_TIMEOUT_MS, attach)

    async def unreachable(self, connection_timeout_ms: int) -> Session:
        return await connect_kazoo("127.0.0.1:1")(SESSION_TIMEOUT_MS, connection_timeout_ms)

    async def stop(self) -> None:
        await asyncio.to_thread(self.server.kill)

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)


@dataclass
class MemoryEnsemble:
    server: MemoryZooKeeper = field(default_factory=MemoryZooKeeper)

    async def session(self, attach: tuple[int, bytes] | None = None) -> Session:
        connect = self.server.client().connect
        return await connect(SESSION_TIMEOUT_MS, CONNECTION_TIMEOUT_MS, attach)

    async def unreachable(self, connection_timeout_ms: int) -> Session:
        client = self.server.client("far away")
        client.disconnect()
        return await client.connect(SESSION_TIMEOUT_MS, connection_timeout_ms)

    async def stop(self) -> None:
        self.server.stop()

    async def start(self) -> None:
        self.server.start()


class Events:
    """Collects what a watch or a state listener reports, and waits for it."""

    def __init__(self) -> None:
        self.seen: list[WatchEvent | State] = []
        self._changed = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []

    def __call__(self, event: WatchEvent | State) -> None:
        self.seen.append(event)
        self._tasks.append(asyncio.get_running_loop().create_task(self._notify()))

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, predicate: Callable[[list[WatchEvent | State]], bool]) -> None:
        """Wait until what was seen satisfies the predicate; at most ten seconds."""
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: predicate(self.seen))

    async def until_count(self, count: int) -> None:
        await self.until(lambda seen: len(seen) >= count)

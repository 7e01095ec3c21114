"""The two ZooKeepers under test behind one interface: real (embedded), and in memory."""

import asyncio
import itertools
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import Session, State, WatchEvent
from barnabas_simulator.zookeeper.server import MemoryZooKeeper, ZooKeeperCopy
from barnabas_tools.local.zookeeper_server import EmbeddedZooKeeper

LAG_SECONDS = 0.05
SESSION_TIMEOUT_MS = 4000
CONNECTION_TIMEOUT_MS = 3000
_copies = itertools.count()


class Ensemble(Protocol):
    """A ZooKeeper with a separate, empty tree for one test."""

    async def session(self, attach: tuple[int, bytes] | None = None) -> Session: ...

    async def unreachable(self, connection_timeout_ms: int) -> Session:
        """Try to connect to an address where no server answers."""
        ...

    async def hold(self) -> None:
        """What is asked from now on is not answered if `stop` follows at once."""
        ...

    async def stop(self) -> None:
        """All connections break; the data and the sessions stay."""
        ...

    async def start(self) -> None: ...

    async def copy(self) -> object:
        """Return a copy of the stopped server's data on disk."""
        ...

    async def restore(self, copy: object) -> None:
        """Replace the stopped server's data on disk by such a copy."""
        ...

    async def connect(self, timeout_ms: int, last_zxid: int) -> Session:
        """A new session that has seen `last_zxid`."""
        ...


@dataclass
class RealEnsemble:
    server: EmbeddedZooKeeper
    chroot: str

    async def session(self, attach: tuple[int, bytes] | None = None) -> Session:
        connect = connect_kazoo(self.server.connect_string + self.chroot)
        return await connect(SESSION_TIMEOUT_MS, CONNECTION_TIMEOUT_MS, attach)

    async def unreachable(self, connection_timeout_ms: int) -> Session:
        return await connect_kazoo("127.0.0.1:1")(SESSION_TIMEOUT_MS, connection_timeout_ms)

    async def hold(self) -> None:
        process = self.server.member.process
        assert process is not None
        await asyncio.to_thread(process.pause)

    async def stop(self) -> None:
        await asyncio.to_thread(self.server.kill)

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)

    async def copy(self) -> object:
        folder = self.server.member.directory
        copy = folder.with_name(f"{folder.name}-copy-{next(_copies)}")
        shutil.copytree(folder / "data", copy)
        return copy

    async def restore(self, copy: object) -> None:
        assert isinstance(copy, Path)
        data = self.server.member.directory / "data"
        shutil.rmtree(data)
        shutil.copytree(copy, data)

    async def connect(self, timeout_ms: int, last_zxid: int) -> Session:
        connect = connect_kazoo(self.server.connect_string + self.chroot)
        return await connect(SESSION_TIMEOUT_MS, timeout_ms, last_zxid=last_zxid)


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

    async def hold(self) -> None:
        pass

    async def stop(self) -> None:
        self.server.stop()

    async def start(self) -> None:
        self.server.start()

    async def copy(self) -> object:
        return self.server.copy()

    async def restore(self, copy: object) -> None:
        assert isinstance(copy, ZooKeeperCopy)
        self.server.restore(copy)

    async def connect(self, timeout_ms: int, last_zxid: int) -> Session:
        return await self.server.client().connect(
            SESSION_TIMEOUT_MS, timeout_ms, last_zxid=last_zxid
        )


class Always(random.Random):
    """Every chance is taken."""

    def random(self) -> float:
        return 0.0


@dataclass
class LaggingEnsemble(MemoryEnsemble):
    """All sessions are connected to one server of several, which lags behind the others."""

    def __post_init__(self) -> None:
        self.fall_behind()

    def fall_behind(self) -> None:
        assert self.server.lag("client", LAG_SECONDS, Always()) is not None

    async def start(self) -> None:
        await super().start()
        self.fall_behind()


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
        """Wait at most ten seconds until the events seen satisfy the predicate."""
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: predicate(self.seen))

    async def until_count(self, count: int) -> None:
        await self.until(lambda seen: len(seen) >= count)

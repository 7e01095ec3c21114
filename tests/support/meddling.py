"""A ZooKeeper session beside which another one writes, at the worst moment."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from barnabas_controller.zookeeper.session import Operation


class Meddling:
    """A session that runs another session's `write` before its first multi that writes `path`."""

    def __init__(self, session: Any, path: str, write: Callable[[], Awaitable[object]]) -> None:
        self._session = session
        self._path = path
        self._write = write
        self.has_meddled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Sequence[Operation]) -> Any:
        if not self.has_meddled and any(one.path == self._path for one in operations):
            self.has_meddled = True
            await self._write()
        return await self._session.multi(operations)

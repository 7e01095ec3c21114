"""Reports when client listeners are full: gRPC closes connections over the limit silently."""

import asyncio
import contextlib
from collections.abc import Callable

from barnabas_common.events import EventKind, EventLog
from barnabas_common.runtime import Offload, TaskScope

CountConnections = Callable[[], tuple[int, int] | None]
"""The connections of all client listeners and their limit; None if the system cannot count them.
Raises OSError."""

_INTERVAL = 5.0
_RELIEVED = 0.9


def is_full(was_full: bool, connections: int, limit: int) -> bool:
    """A listener is full from its limit on, and until a tenth of the limit is free again."""
    return connections >= limit * (_RELIEVED if was_full else 1.0)


class ConnectionWatch:
    """Counts the connections every few seconds, from `start` until `close`.

    Start it after the listeners are bound, and close it before they are closed.
    """

    def __init__(self, events: EventLog, offload: Offload, count: CountConnections) -> None:
        self._events = events
        self._offload = offload
        self._count = count
        self._is_full = False
        self._tasks = TaskScope("connection watch")

    def start(self) -> None:
        self._tasks.spawn(self._watch(), "watch")

    async def close(self) -> None:
        await self._tasks.close()

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(OSError):  # no descriptor is left for this; try again later
                counted = await self._offload.run(self._count)
                if counted is None:
                    return
                self._report(*counted)
            await asyncio.sleep(_INTERVAL)

    def _report(self, connections: int, limit: int) -> None:
        was_full, self._is_full = self._is_full, is_full(self._is_full, connections, limit)
        if self._is_full and not was_full:
            self._events.record(
                EventKind.CONNECTION_LIMIT_REACHED,
                f"clients hold {connections} connections, the most that this broker accepts; new"
                " ones are closed immediately (see max.connections, and the limit of open files)",
                connections=connections,
                limit=limit,
            )
        elif was_full and not self._is_full:
            self._events.record(
                EventKind.CONNECTION_LIMIT_RELIEVED,
                f"clients hold {connections} connections, {limit} are allowed",
                connections=connections,
                limit=limit,
            )

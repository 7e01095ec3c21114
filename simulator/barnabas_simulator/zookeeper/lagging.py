"""A server of the ensemble that lags behind: it applies each change some seconds after the head.

What goes through it is read from its own tree, and watched there. A write goes to the head at once,
and is answered when this server has applied it, as ZooKeeper's followers do: so a session reads
what it has written, and everything older.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from copy import deepcopy
from dataclasses import dataclass, field

from barnabas_controller.zookeeper.session import WatchEvent, ZooKeeperError

from barnabas_simulator.zookeeper.session import MemorySession, Watching
from barnabas_simulator.zookeeper.tree import Tree
from barnabas_simulator.zookeeper.watches import Watches

_NOBODY = 0

Change = Callable[[Tree], object]


@dataclass
class _Pending:
    """A change that the head has made; `then` is called once this server has made it too."""

    change: Change
    events: list[WatchEvent]
    then: list[tuple[int, Callable[[], None]]] = field(default_factory=list)


class LaggingServer:
    """`lag` in seconds; a client that reconnects comes back to it by `chance`."""

    def __init__(self, head: Tree, lag: float, chance: random.Random, context: Context) -> None:
        self.tree = deepcopy(head)
        self.watches = Watches()
        self._lag = lag
        self._chance = chance
        self._context = context
        self._pending: deque[_Pending] = deque()

    def accepts(self, session: MemorySession) -> bool:
        """Whether a client that connects lands here; none that has seen newer data does."""
        is_behind = session.last_zxid > self.tree.zxid or session.has_missed_events
        return not is_behind and self._chance.random() < 0.5

    def committed(self, change: Change, events: list[WatchEvent]) -> None:
        """Make the head's change, `lag` seconds later."""
        self._pending.append(_Pending(change, list(events)))
        asyncio.get_running_loop().call_later(self._lag, self._apply, context=self._context)

    def after_latest(self, act: Callable[[], None], session_id: int = _NOBODY) -> None:
        """Act once the changes that the head has made until now are made here.

        `session_id`: the session that waits for it.
        """
        if self._pending:
            self._pending[-1].then.append((session_id, act))
        else:
            act()

    def in_turn(self, session_id: int, act: Callable[[], None]) -> None:
        """Act after what the session has asked for before, at once if it waits for nothing."""
        for pending in reversed(self._pending):
            if any(waiting == session_id for waiting, _ in pending.then):
                pending.then.append((session_id, act))
                return
        act()

    def leave(self, session_id: int) -> list[Watching]:
        """Let a session go to a server that is up to date; returns its watches.

        Those fire at once for which that server has something new.
        """
        leaving = Watches()
        for watching in self.watches.take(session_id):
            leaving.add(watching)
        for pending in self._pending:
            leaving.fire(pending.events)
        return leaving.take()

    def catch_up(self) -> None:
        while self._pending:
            self._apply()

    def _apply(self) -> None:
        if not self._pending:  # it has caught up
            return
        pending = self._pending.popleft()
        self.tree.changed = []
        with suppress(ZooKeeperError):  # as at the head
            pending.change(self.tree)
        self.watches.fire(self.tree.changed)
        for _, act in pending.then:
            act()

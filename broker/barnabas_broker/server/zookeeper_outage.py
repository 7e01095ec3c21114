"""Reports when ZooKeeper does not serve this broker, why, and when it serves again.

A short loss of the connection is normal and is only logged. A loss that outlasts the session
timeout is an event: meanwhile there are no elections and no ISR changes, and the session may end.
"""

import asyncio

from barnabas_common.events import EventKind, EventLog
from barnabas_common.runtime import Clock
from barnabas_controller.zookeeper.session import (
    Session,
    State,
    ZooKeeperBehind,
    ZooKeeperUnreachable,
)

LOOK_SECONDS = 2.0
REPEAT_SECONDS = 60.0


class ZooKeeperOutage:
    """The present outage, if there is one; reported after `after` seconds without a server.

    `is_reported` is set from the first report of an outage to its end.
    """

    def __init__(self, clock: Clock, events: EventLog, after: float) -> None:
        self._clock = clock
        self._events = events
        self._after = after
        self._began: float | None = None
        self._next_report = 0.0
        self._was_behind = False
        self.is_reported = asyncio.Event()

    async def watch(self, session: Session) -> None:
        """Follow one session until it is over."""
        changed = asyncio.Event()
        session.on_state(lambda _: changed.set())
        while session.state in (State.CONNECTED, State.SUSPENDED):
            if session.state is State.CONNECTED:
                self.ended()
                await changed.wait()
            else:
                await self._look_again(session, changed)
            changed.clear()

    async def _look_again(self, session: Session, changed: asyncio.Event) -> None:
        self._begin()
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await changed.wait()
        except TimeoutError:
            self.failed(await session.diagnose())

    def _begin(self) -> None:
        if self._began is None:
            self._began = self._clock.monotonic()
            self._next_report = self._began + self._after

    def failed(self, error: ZooKeeperUnreachable) -> None:
        """Note a failed attempt to connect.

        It is reported once the outage is long enough, then every `REPEAT_SECONDS`, and at once when
        ZooKeeper turns out to be behind.
        """
        self._begin()
        now = self._clock.monotonic()
        behind = isinstance(error, ZooKeeperBehind)
        if now < self._next_report and behind <= self._was_behind:
            return
        self._next_report = now + REPEAT_SECONDS
        self._was_behind = behind
        kind = EventKind.ZOOKEEPER_BEHIND if behind else EventKind.ZOOKEEPER_UNREACHABLE
        self._events.record(kind, str(error), seconds=round(now - (self._began or now)))
        self.is_reported.set()

    def ended(self) -> None:
        """Note that ZooKeeper serves this broker; the end of a long outage is reported."""
        began, self._began = self._began, None
        if began is not None and self._clock.monotonic() - began >= self._after:
            self._events.record(
                EventKind.ZOOKEEPER_REACHABLE,
                "ZooKeeper serves this broker again",
                seconds=round(self._clock.monotonic() - began),
            )
        self._was_behind = False
        self.is_reported.clear()

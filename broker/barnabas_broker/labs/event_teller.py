"""Tells a lab's reader what the brokers themselves say of what happens, as it happens."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from barnabas import Admin
from barnabas.errors import BarnabasError
from barnabas.events import Event, EventKind
from barnabas.events.telling import in_words
from barnabas.runtime import TaskScope

# How long to wait for what the brokers have seen and the stream has not brought yet.
CATCH_UP_SECONDS = 3.0
# They move with every record; the labs say themselves where they stand.
UNTOLD = frozenset({EventKind.OFFSETS_MOVED})


class EventTeller:
    """To be entered once the cluster serves, and left before it is gone."""

    def __init__(self, bootstrap: str, tell: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._tell = tell
        self._exit = AsyncExitStack()
        self._told: set[tuple[int, int, int]] = set()
        self._news = asyncio.Condition()
        self._tasks = TaskScope("events of a lab")

    async def __aenter__(self) -> Self:
        self._admin = await self._exit.enter_async_context(Admin(self._bootstrap))
        self._stream = await self._exit.enter_async_context(await self._admin.events())
        for event in await self._remembered():
            self._told.add(_name(event))
        self._tasks.spawn(self._read(), "reader")
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.catch_up()
        await self._tasks.close()
        await self._exit.aclose()

    async def _read(self) -> None:
        async for news in self._stream:
            if isinstance(news, Event) and news.kind not in UNTOLD:
                self._tell(f"    · {in_words(news)}")
                async with self._news:
                    self._told.add(_name(news))
                    self._news.notify_all()

    async def catch_up(self) -> None:
        """Wait until everything is told that the brokers have seen by now.

        The stream is a little late, and what a broker has seen is gone with its process.
        """
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                seen = {_name(event) for event in await self._remembered()}
                async with self._news:
                    await self._news.wait_for(lambda: seen <= self._told)
        except (TimeoutError, BarnabasError):  # nobody tells anything more
            return

    async def _remembered(self) -> list[Event]:
        answers = await self._admin.describe_events()
        return [event for a in answers for event in a.events if event.kind not in UNTOLD]


def _name(event: Event) -> tuple[int, int, int]:
    """What tells an event from all others: sequences begin anew with each life of a broker."""
    return event.broker_id, event.time_ms, event.sequence

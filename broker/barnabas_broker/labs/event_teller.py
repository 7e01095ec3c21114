"""Tells a lab's reader what the brokers themselves say of what happens, as it happens."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from barnabas import Admin
from barnabas.events import Event, EventKind
from barnabas.events.telling import in_words
from barnabas.runtime import TaskScope

# What happened last comes a little late, for the events of all brokers are put in order.
LAST_WORDS_SECONDS = 0.5
# They move with every record; the labs say themselves where they stand.
UNTOLD = frozenset({EventKind.OFFSETS_MOVED})


class EventTeller:
    """To be entered once the cluster serves, and left before it is gone."""

    def __init__(self, bootstrap: str, tell: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._tell = tell
        self._exit = AsyncExitStack()
        self._tasks = TaskScope("events of a lab")

    async def __aenter__(self) -> Self:
        admin = await self._exit.enter_async_context(Admin(self._bootstrap))
        self._stream = await self._exit.enter_async_context(await admin.events())
        self._tasks.spawn(self._read(), "reader")
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.sleep(LAST_WORDS_SECONDS)
        await self._tasks.close()
        await self._exit.aclose()

    async def _read(self) -> None:
        async for news in self._stream:
            if isinstance(news, Event) and news.kind not in UNTOLD:
                self._tell(f"    · {in_words(news)}")

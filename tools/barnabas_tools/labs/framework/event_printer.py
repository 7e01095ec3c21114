"""Prints the brokers' events to a lab's reader as they happen."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from barnabas import Admin
from barnabas_common.errors import BarnabasError
from barnabas_common.events import Event, EventKind
from barnabas_common.events.event_text import in_words
from barnabas_common.runtime import TaskScope

# Offsets move with every record; the labs print them when they matter.
NOT_PRINTED = frozenset({EventKind.OFFSETS_MOVED})


class EventPrinter:
    """Prints events for as long as its `async with` block lasts.

    The cluster must serve when the block begins, and run until it ends.
    """

    def __init__(self, bootstrap: str, tell: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._tell = tell
        self._exit = AsyncExitStack()
        self._told: set[tuple[int, int, int]] = set()
        self._tasks = TaskScope("events of a lab")

    async def __aenter__(self) -> Self:
        self._admin = await self._exit.enter_async_context(Admin(self._bootstrap))
        self._stream = await self._exit.enter_async_context(await self._admin.events())
        for answer in await self._admin.describe_events():
            self._told.update(map(_name, answer.events))
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
            if isinstance(news, Event):
                self._print(news)

    async def catch_up(self) -> set[int]:
        """Print all events that the brokers have recorded so far; returns which brokers answered.

        The stream is slightly late, and a broker's events are lost with its process.
        """
        try:
            answers = await self._admin.describe_events()
        except BarnabasError:  # no broker is left to be asked
            return set()
        events = (event for answer in answers for event in answer.events)
        for event in sorted(events, key=lambda event: event.time_ms):
            self._print(event)
        return {answer.broker_id for answer in answers if answer.error is None}

    def _print(self, event: Event) -> None:
        if event.kind not in NOT_PRINTED and _name(event) not in self._told:
            self._told.add(_name(event))
            self._tell(f"    · {in_words(event)}")


def _name(event: Event) -> tuple[int, int, int]:
    """Return what identifies an event: sequences start again with each incarnation of a broker."""
    return event.broker_id, event.time_ms, event.sequence

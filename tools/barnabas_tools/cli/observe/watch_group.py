"""`barnabas watch --group`: a group's state and its events, as a screen or as lines."""

import asyncio
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from barnabas import Admin
from barnabas.admin import Interruption
from barnabas_common.errors import BarnabasError
from barnabas_common.events import Event, in_order
from barnabas_common.printable import printable
from barnabas_common.runtime import TaskScope
from rich.console import Console

from barnabas_tools.cli.observe.event_lines import (
    clock,
    event_line,
    event_row,
    interruption_line,
    interruption_row,
)
from barnabas_tools.cli.observe.group_look import GroupLook, Watched, look_at
from barnabas_tools.cli.observe.group_screen import GroupScreen
from barnabas_tools.cli.output import print_json
from barnabas_tools.cli.settings import Settings

LOOK_SECONDS = 1.0
# A coordinator that does not answer is reported after this time, and asked again.
ANSWER_MS = 5_000


class Display(Protocol):
    """Where the state and the events of a group go."""

    def show_state(self, look: GroupLook) -> None: ...

    def show_trouble(self, why: str) -> None: ...

    def show_news(self, news: Event | Interruption) -> None: ...


async def watch_group(
    settings: Settings, group: str, from_beginning: bool, seconds: float | None
) -> None:
    """Until it is cancelled, or for so many seconds."""
    async with Admin(settings.bootstrap, default_api_timeout_ms=ANSWER_MS) as admin:
        try:
            async with asyncio.timeout(seconds):
                console = Console()
                if settings.json or not sys.stdout.isatty() or console.is_dumb_terminal:
                    await follow(admin, group, Lines(settings.json, group), from_beginning)
                else:
                    screen = GroupScreen(group, console)
                    with screen.live():
                        await follow(admin, group, screen, from_beginning)
        except TimeoutError:
            return


async def show_group_once(settings: Settings, group: str) -> None:
    """Print the group's present state and the stored events that concern it.

    Raises the error of a coordinator that does not answer.
    """
    lines, watched = Lines(settings.json, group), Watched(group)
    async with Admin(settings.bootstrap, default_api_timeout_ms=ANSWER_MS) as admin:
        lines.show_state(await look_at(admin, watched))
        answers = await admin.describe_events([])
    for event in in_order(event for answer in answers for event in answer.events):
        if watched.concerns(event):
            lines.show_news(event)


async def follow(admin: Admin, group: str, display: Display, from_beginning: bool) -> None:
    """Show the group until cancelled, whatever happens to its coordinator."""
    tasks = TaskScope("watch")
    watched = Watched(group)
    stream = await admin.events([], from_beginning=from_beginning)
    try:
        await _look(admin, watched, display)  # it says which events concern the group
        tasks.spawn(_look_again(admin, watched, display), "group")
        async with stream:
            async for news in stream:
                if isinstance(news, Interruption) or watched.concerns(news):
                    display.show_news(news)
    finally:
        await tasks.close()


async def _look_again(admin: Admin, watched: Watched, display: Display) -> None:
    now = asyncio.get_running_loop().time
    seconds = LOOK_SECONDS
    while True:
        await asyncio.sleep(seconds)
        began = now()
        await _look(admin, watched, display)
        # With many members and partitions these requests must not become the brokers' main work.
        seconds = max(LOOK_SECONDS, 4 * (now() - began))


async def _look(admin: Admin, watched: Watched, display: Display) -> None:
    try:
        display.show_state(await look_at(admin, watched))
    except BarnabasError as error:
        display.show_trouble(str(error))


class Lines:
    """Prints each event, and the state whenever it differs from what was printed last."""

    def __init__(self, json: bool, group: str) -> None:
        self._json = json
        self._group = group
        self._last: Mapping[str, Any] = {}

    def show_state(self, look: GroupLook) -> None:
        row = look.row()
        if row != self._last:
            self._last = row
            self._print_state(row, [look.words(), *look.waits()])

    def show_trouble(self, why: str) -> None:
        row = {"group": self._group, "state": None, "trouble": why}
        if self._last.get("state", "") is not None:  # the reasons of a failure may alternate
            self._last = row
            self._print_state(row, [f"group {self._group}: no answer: {why}"])

    def _print_state(self, row: Mapping[str, Any], lines: list[str]) -> None:
        now = time.time_ns() // 1_000_000
        if self._json:
            print_json({"time_ms": now, "kind": "group-state", **row})
        else:
            print("\n".join(f"{clock(now)} {printable(line)}" for line in lines))

    def show_news(self, news: Event | Interruption) -> None:
        if self._json:
            print_json(event_row(news) if isinstance(news, Event) else interruption_row(news))
        else:
            print(event_line(news) if isinstance(news, Event) else interruption_line(news))

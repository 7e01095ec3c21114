"""`barnabas watch --group`: a group's events as they occur, and its state when that changes."""

import asyncio
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas_tools.cli.output import print_json
from barnabas_tools.cli.settings import Settings

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas_common.events import Event

LOOK_SECONDS = 1.0


async def watch_group(
    settings: Settings, group: str, from_beginning: bool, seconds: float | None
) -> None:
    """Until it is cancelled, or for so many seconds."""
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        try:
            async with asyncio.timeout(seconds):
                looking = asyncio.ensure_future(_states(settings, admin, group))
                try:
                    await _events(settings, admin, group, from_beginning)
                finally:
                    looking.cancel()
        except TimeoutError:
            return


async def _events(settings: Settings, admin: "Admin", group: str, from_beginning: bool) -> None:
    from barnabas_common.events import Event

    async with await admin.events([], from_beginning=from_beginning) as stream:
        async for news in stream:
            if isinstance(news, Event) and news.details.get("group") == group:
                _print_event(settings, news)


def _print_event(settings: Settings, event: "Event") -> None:
    from barnabas_tools.cli.observe.event_lines import event_line, event_row

    if settings.json:
        print_json(event_row(event))
    else:
        print(event_line(event))
    sys.stdout.flush()


async def _states(settings: Settings, admin: "Admin", group: str) -> None:
    """Prints the state whenever it differs from what was printed last."""
    from barnabas_common.errors import BarnabasError

    last: Mapping[str, Any] = {}
    while True:
        try:
            state = await group_state(admin, group)
        except BarnabasError as error:
            state = {"group": group, "state": f"unknown: {error}", "members": None, "lag": None}
        if state != last:
            last = state
            _print_state(settings, state)
        await asyncio.sleep(LOOK_SECONDS)


def _print_state(settings: Settings, state: Mapping[str, Any]) -> None:
    from barnabas_tools.cli.observe.event_lines import clock

    now = time.time_ns() // 1_000_000
    if settings.json:
        print_json({"time_ms": now, "kind": "group-state", **state})
    else:
        print(
            f"{clock(now)} group {state['group']}: {state['state']},"
            f" members {state['members']}, lag {state['lag']}"
        )
    sys.stdout.flush()


async def group_state(admin: "Admin", group: str) -> dict[str, Any]:
    """State, number of members, and lag over all partitions that have a commit."""
    from barnabas_common.messages.offsets import LATEST_TIMESTAMP

    found = (await admin.describe_groups([group]))[group]
    committed = await admin.list_group_offsets(group)
    names = set(await admin.list_topics())
    wanted = {tp: LATEST_TIMESTAMP for tp in committed if tp.topic in names}
    ends = await admin.list_offsets(wanted)
    lag = sum(max(end.offset - committed[tp].offset, 0) for tp, end in ends.items())
    return {"group": group, "state": found.state, "members": len(found.members), "lag": lag}

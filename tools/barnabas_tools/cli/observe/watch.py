"""`barnabas watch`: the replicas and events of a cluster, live."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas_tools.cli.output import print_json
from barnabas_tools.cli.settings import (
    Settings,
    UsageFailed,
    run_async,
    run_until_interrupted,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas.admin import Admin, Interruption
    from barnabas_common.events import Event

app = typer.Typer(add_completion=False, help="Show replicas and events live.")


@app.command()
def watch(
    context: typer.Context,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="The topics; default: all.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="A consumer group: its events, its state, its lag."),
    ] = None,
    events_only: Annotated[
        bool, typer.Option("--events-only", help="Print only the events, one per line.")
    ] = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the stored events.")
    ] = False,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Print the present state and the stored events, and exit. JSON has the events.",
        ),
    ] = False,
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", help="Stop after this time.")
    ] = None,
) -> None:
    """Show offsets, epochs and ISR of every replica live, and the events of all brokers with their
    causes.

    In a terminal the screen is redrawn; otherwise, and with --events-only or --output json, each
    event is one line. Ctrl-C stops it. Brokers may stop and restart while it runs.

    With --group: the group's state, its members, its lag in each partition, and its events.
    """
    if seconds is not None and not seconds > 0:
        raise UsageFailed("--for wants a positive number of seconds")
    settings, names = settings_of(context), list(topics or [])
    if group is not None:
        from barnabas_tools.cli.observe.watch_group import show_group_once, watch_group

        if names or events_only:
            raise UsageFailed("--group is watched by itself: no topics, no --events-only")
        if once:
            run_async(show_group_once(settings, group))
        else:
            run_until_interrupted(watch_group(settings, group, from_beginning, seconds))
    elif once:
        run_async(_once(settings, names, events_only))
    elif settings.json or events_only or not sys.stdout.isatty():
        run_until_interrupted(_lines(settings, names, from_beginning, seconds))
    else:
        run_until_interrupted(_screen(settings, names, from_beginning, seconds))


@asynccontextmanager
async def _admin(settings: Settings, topics: list[str]) -> "AsyncIterator[Admin]":
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        for topic in topics:  # a topic that does not exist is an error
            await admin.describe_topic(topic)
        yield admin


async def _once(settings: Settings, topics: list[str], events_only: bool) -> None:
    from barnabas_common.events import in_order

    from barnabas_tools.cli.observe.replica import STATUS_COLUMNS, replica_rows
    from barnabas_tools.cli.output import print_rows

    async with _admin(settings, topics) as admin:
        answers = await admin.describe_events(topics)
        if not events_only and not settings.json:
            rows = replica_rows(await admin.describe_replicas(topics))
            print_rows(settings, STATUS_COLUMNS, rows)
            print()
        for event in in_order(event for answer in answers for event in answer.events):
            _print(settings, event)


async def _lines(
    settings: Settings, topics: list[str], from_beginning: bool, seconds: float | None
) -> None:
    async with _admin(settings, topics) as admin:
        try:
            async with (
                asyncio.timeout(seconds),
                await admin.events(topics, from_beginning=from_beginning) as stream,
            ):
                async for news in stream:
                    _print(settings, news)
        except TimeoutError:
            return


def _print(settings: Settings, news: "Event | Interruption") -> None:
    from barnabas_common.events import Event

    from barnabas_tools.cli.observe.event_lines import (
        event_line,
        event_row,
        interruption_line,
        interruption_row,
    )

    if settings.json:
        print_json(event_row(news) if isinstance(news, Event) else interruption_row(news))
    else:
        print(event_line(news) if isinstance(news, Event) else interruption_line(news))


async def _screen(
    settings: Settings, topics: list[str], from_beginning: bool, seconds: float | None
) -> None:
    from barnabas_tools.cli.observe.watch_screen import Screen

    async with _admin(settings, topics) as admin:
        try:
            async with asyncio.timeout(seconds):
                await Screen(admin, topics).run(from_beginning)
        except TimeoutError:
            return

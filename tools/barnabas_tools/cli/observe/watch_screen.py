"""The screen of `barnabas watch`: lanes above, the latest events below."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby

from barnabas.admin import Admin, Interruption
from barnabas_common.errors import BarnabasError
from barnabas_common.events import Event, EventKind
from barnabas_common.printable import printable
from barnabas_common.runtime import TaskScope
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from barnabas_tools.cli.observe.event_lines import event_line, interruption_line
from barnabas_tools.cli.observe.lanes import Lane, Lanes, bar, lanes
from barnabas_tools.cli.output import counted

LOOK_EVERY = 0.5
BAR_WIDTH = 32
LEAST_BAR_WIDTH = 6
NUMBERS_WIDTH = 65  # the columns beside the bar, of names and numbers of usual length
REMEMBERED = 200
_ALARMING = frozenset(
    {
        EventKind.BROKER_GONE,
        EventKind.BROKER_SUSPECTED,
        EventKind.CONTROLLER_DEPOSED,
        EventKind.ELECTION_REFUSED,
        EventKind.FETCH_FAILED,
        EventKind.ISR_CHANGE_REFUSED,
        EventKind.LOG_DIRECTORY_FAILED,
        EventKind.LOG_RECOVERED,
        EventKind.LOG_TRUNCATED,
        EventKind.REPLICA_OFFLINE,
        EventKind.REQUEST_FENCED,
        EventKind.SESSION_LOST,
        EventKind.TRANSACTION_FENCED,
    }
)


class Screen:
    """Draws replicas and events until it is cancelled."""

    def __init__(self, admin: Admin, topics: Sequence[str], console: Console | None = None) -> None:
        self._admin = admin
        self._topics = topics
        self._console = console or Console()
        self._lanes: Lanes = {}
        self._news: deque[Event | Interruption] = deque(maxlen=REMEMBERED)
        self._trouble = ""

    async def run(self, from_beginning: bool) -> None:
        """Run until cancelled; the terminal is restored at the end."""
        tasks = TaskScope("watch")
        stream = await self._admin.events(self._topics, from_beginning=from_beginning)
        try:
            with Live(
                console=self._console, get_renderable=self.draw, refresh_per_second=4, screen=True
            ):
                tasks.spawn(self._look(), "lanes")
                async with stream:
                    async for news in stream:
                        if not (isinstance(news, Event) and news.kind is EventKind.OFFSETS_MOVED):
                            self._news.append(news)  # the lanes show moved offsets
        finally:
            await tasks.close()

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            began = now()
            try:
                answers = await self._admin.describe_replicas(self._topics)
                self._lanes = lanes(answers, self._lanes)
                self._trouble = ""
            except BarnabasError as error:
                self._lanes = lanes([], self._lanes)
                self._trouble = str(error)
            # In a large cluster these requests must not become the brokers' main work.
            await asyncio.sleep(max(LOOK_EVERY, 4 * (now() - began)))

    # ---- drawing

    def draw(self) -> RenderableType:
        """Draw the lanes that fit, then the latest events in a third of the terminal."""
        height = self._console.height
        for_events = min(len(self._news), height // 3 - 2)
        shown = list(self._lanes.values())[: max(3, height - 5 - for_events)]
        hidden = len(self._lanes) - len(shown)
        head = (
            "LEO, HW and LSO of every replica; █ committed, ▓ in an undecided transaction,"
            " ▒ not committed, · missing. Ctrl-C ends it."
        )
        if hidden:
            head += f" {counted(hidden, 'more replica')} do not fit: name a topic."
        lines = max(1, height - len(shown) - 5)
        latest = list(self._news)[-lines:]
        parts: list[RenderableType] = [Text(head, style="dim"), self._table(shown)]
        if self._trouble:
            parts.append(Text(printable(self._trouble), style="red"))
        parts.append(Text())
        parts += [self._line(news) for news in latest]
        return Group(*parts)

    def _line(self, news: Event | Interruption) -> Text:
        if isinstance(news, Interruption):
            line = Text(interruption_line(news), style="dim")
        else:
            line = Text(event_line(news), style="yellow" if news.kind in _ALARMING else "")
        line.truncate(self._console.width, overflow="ellipsis")
        return line

    def _table(self, shown: Sequence[Lane]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("PARTITION", "BROKER", "ROLE", "EPOCH", "ISR", "LEO", "HW", "LSO", "", ""):
            right = heading in ("EPOCH", "LEO", "HW", "LSO")
            table.add_column(heading, no_wrap=True, justify="right" if right else "left")
        width = max(LEAST_BAR_WIDTH, min(BAR_WIDTH, self._console.width - NUMBERS_WIDTH))
        for _, group in groupby(shown, key=lambda lane: (lane.topic, lane.partition)):
            for row, style in _rows(list(group), width):
                table.add_row(*row, style=style)
        return table


def _rows(partition: list[Lane], bar_width: int) -> Iterator[tuple[list[str], str]]:
    """Yield the rows of one partition with their styles, all on one scale."""
    start = min(max(lane.log_start_offset, 0) for lane in partition)
    end = max(lane.log_end_offset for lane in partition)
    for lane in partition:
        role = "gone" if lane.is_gone else "leader" if lane.is_leader else "follower"
        style = "dim" if lane.is_gone else "bold" if lane.is_leader else ""
        row = [
            f"{lane.topic}-{lane.partition}",
            str(lane.broker),
            role,
            str(lane.leader_epoch),
            "in" if lane.in_sync and not lane.is_gone else "out",
            str(lane.log_end_offset),
            str(lane.high_watermark),
            str(lane.last_stable_offset),
            bar(lane, start, end, bar_width),
            lane.held_back_because if lane.is_leader and not lane.is_gone else "",
        ]
        yield row, style

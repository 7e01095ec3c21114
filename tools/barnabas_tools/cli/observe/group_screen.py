"""The screen of `barnabas watch --group`: the group above, its latest events below."""

import time
from collections import deque
from collections.abc import Iterable, Sequence

from barnabas.admin import Interruption
from barnabas_common.events import Event, EventKind
from barnabas_common.printable import printable
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from barnabas_tools.cli.observe.event_lines import clock, event_line, interruption_line
from barnabas_tools.cli.observe.group_look import GroupLook
from barnabas_tools.cli.output import counted

REMEMBERED = 200
LEAST_EVENTS = 4
_ALARMING = frozenset(
    {
        EventKind.COORDINATOR_LOAD_FAILED,
        EventKind.COORDINATOR_RECORD_UNREADABLE,
        EventKind.COORDINATOR_UNLOADED,
        EventKind.GROUP_MEMBER_EXPIRED,
        EventKind.GROUP_OFFSETS_REMOVED,
        EventKind.GROUP_GONE,
    }
)


class GroupScreen:
    """Shows what it was told last; `trouble` says why the group cannot be asked now."""

    def __init__(self, group: str, console: Console) -> None:
        self._group = group
        self._console = console
        self._look: GroupLook | None = None
        self._seen_ms = 0
        self._trouble = ""
        self._news: deque[Event | Interruption] = deque(maxlen=REMEMBERED)

    def live(self) -> Live:
        """The terminal for as long as its `with` block lasts."""
        return Live(
            console=self._console, get_renderable=self.draw, refresh_per_second=4, screen=True
        )

    def show_state(self, look: GroupLook) -> None:
        self._look, self._trouble = look, ""
        self._seen_ms = time.time_ns() // 1_000_000

    def show_trouble(self, why: str) -> None:
        self._trouble = why

    def show_news(self, news: Event | Interruption) -> None:
        self._news.append(news)

    # ---- drawing

    def draw(self) -> RenderableType:
        """Draw the members and partitions that fit, then the latest events."""
        parts = self._head()
        if self._look is not None:
            room = self._console.height - len(parts) - 4 - min(len(self._news), LEAST_EVENTS)
            tables = self._tables(self._look, max(room, 2))
            parts += tables
        left = self._console.height - self._lines(parts) - 1
        if left > 0:
            parts.append(Text())
            parts += [self._line(news) for news in list(self._news)[-left:]]
        return Group(*parts)

    def _lines(self, parts: Iterable[RenderableType]) -> int:
        return sum(part.row_count + 1 if isinstance(part, Table) else 1 for part in parts)

    def _head(self) -> list[RenderableType]:
        look = self._look
        words = f"group {self._group}: asking its coordinator" if look is None else look.words()
        head = [self._fitting(f"{words}. Ctrl-C ends it.", "bold")]
        if self._trouble:
            of = f" (above: as of {clock(self._seen_ms)})" if look is not None else ""
            head.append(self._fitting(f"no answer{of}: {self._trouble}", "red"))
        elif look is not None:
            head += [self._fitting(words, "yellow") for words in look.waits()]
        return list(head)

    def _fitting(self, text: str, style: str) -> Text:
        line = Text(printable(text), style=style)
        line.truncate(self._console.width, overflow="ellipsis")
        return line

    def _line(self, news: Event | Interruption) -> Text:
        if isinstance(news, Interruption):
            return self._fitting(interruption_line(news), "dim")
        return self._fitting(event_line(news), "yellow" if news.kind in _ALARMING else "")

    def _tables(self, look: GroupLook, room: int) -> list[RenderableType]:
        """Both tables, cut so that they have `room` rows together; members take a third at most."""
        members = [
            (
                member.client_id or "-",
                member.member_id,
                member.host,
                member.group_instance_id or "-",
                ", ".join(map(str, member.assignment)) or "-",
            )
            for member in look.described.members
        ]
        partitions = [
            (str(p.topic_partition), _cell(p.committed), _cell(p.end), _cell(p.lag), p.reader)
            for p in look.partitions
        ]
        for_members = min(len(members), max(room // 3, room - len(partitions)))
        found: list[RenderableType] = []
        if members:
            headings = ("CLIENT", "MEMBER", "HOST", "INSTANCE", "PARTITIONS")
            found += _table(headings, members, for_members, "member")
        if partitions:
            headings = ("PARTITION", "COMMITTED", "LOG END", "LAG", "READ BY")
            found += _table(headings, partitions, room - for_members, "partition")
        return found


def _cell(value: int | None) -> str:
    return "-" if value is None else str(value)


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], room: int, noun: str
) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        right = heading in ("COMMITTED", "LOG END", "LAG")
        # What a narrow terminal cuts is the long id, and the long list.
        table.add_column(
            heading, no_wrap=True, overflow="ellipsis", justify="right" if right else "left"
        )
    for row in rows[: max(room, 1)]:
        table.add_row(*(Text(printable(cell)) for cell in row))
    hidden = len(rows) - table.row_count
    if not hidden:
        return [table]
    return [table, Text(f"{counted(hidden, f'more {noun}')} do not fit", style="dim")]

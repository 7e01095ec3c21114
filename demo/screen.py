"""What the demo shows: a live table on a terminal, otherwise a line for each change."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deliveries import Deliveries
from monitor import Monitor
from rich.console import Console
from rich.live import Live
from rich.table import Table

_LINE_PAUSE = 0.5
_WIDTH = 120  # of a file or a pipe


class Screen:
    """Prints events with the seconds since the start, and the state of the topic."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            self.console.width = max(self.console.width, _WIDTH)
        self._started = time.monotonic()
        self._last_line = ""
        self._seen = (0.0, 0)
        self._rate = 0.0

    def say(self, text: str) -> None:
        """Print one event."""
        since = f"[dim]{time.monotonic() - self._started:6.1f} s[/dim]"
        self.console.print(f"{since}  {text}", soft_wrap=True)

    @contextmanager
    def live(self, monitor: Monitor, deliveries: Deliveries) -> Iterator[None]:
        """Show the topic for as long as the block lasts. Needs a running event loop."""
        task = asyncio.create_task(self._watch(monitor, deliveries))
        try:
            if self.console.is_terminal:
                with Live(
                    console=self.console,
                    get_renderable=lambda: self._table(monitor, deliveries),
                    refresh_per_second=5,
                ):
                    yield
            else:
                yield
        finally:
            task.cancel()

    async def _watch(self, monitor: Monitor, deliveries: Deliveries) -> None:
        told = None
        while True:
            if monitor.election is not None and monitor.election is not told:
                told = monitor.election
                self.say(f"[green]new leaders in every partition[/green], {told}")
            self._measure_rate(deliveries)
            line = self._line(monitor)
            news = bool(monitor.partitions) and line != self._last_line
            if news and not self.console.is_terminal:
                self.say(f"{line}  {self._rate:>7,.0f} acks/s")
            self._last_line = line
            await asyncio.sleep(_LINE_PAUSE)

    def _measure_rate(self, deliveries: Deliveries) -> None:
        now = time.monotonic()
        when, acked = self._seen
        self._rate = (deliveries.acked - acked) / max(now - when, 1e-6)
        self._seen = (now, deliveries.acked)

    def _line(self, monitor: Monitor) -> str:
        leaders = "  ".join(
            f"{number}:[bold]{p.leader if p.leader >= 0 else '-'}[/bold]"
            f"({''.join(map(str, p.in_sync_replicas))})"
            for number, p in sorted(monitor.partitions.items())
        )
        total = sum(p.high_watermark for p in monitor.partitions.values())
        return f"leader(ISR) {leaders}  HW {total:>7,}"

    def _table(self, monitor: Monitor, deliveries: Deliveries) -> Table:
        table = Table(
            title=f"{deliveries.acked:,} rows acknowledged, {self._rate:,.0f} a second",
            title_style="bold",
        )
        for name in ("partition", "leader", "epoch", "in-sync replicas", "high watermark"):
            table.add_column(name, justify="right")
        table.add_column("longest gap between acks", justify="right")
        for number, p in sorted(monitor.partitions.items()):
            whole = len(p.in_sync_replicas) == 3
            table.add_row(
                str(number),
                f"[bold cyan]{p.leader}" if p.leader >= 0 else "[bold red]none",
                str(p.epoch),
                f"{'[green]' if whole else '[yellow]'}{p.in_sync_replicas}".replace(" [", " \\["),
                f"{p.high_watermark:,}",
                f"{deliveries.longest_gap.get(number, 0.0):.2f} s",
            )
        return table

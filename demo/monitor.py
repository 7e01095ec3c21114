"""Prints live what happens: leaders, in-sync replicas, high watermarks, and the rate of acks."""

import asyncio
import time
from dataclasses import dataclass, field

from barnabas import Admin
from barnabas.errors import BarnabasError
from deliveries import Deliveries
from rich.console import Console


@dataclass
class Monitor:
    """Watches one topic twice a second until cancelled; prints a line when something changed.

    `leaderless_since` and `elected_after` time the election that follows `leader_killed`.
    """

    console: Console
    bootstrap: str
    topic: str
    deliveries: Deliveries
    started: float = field(default_factory=time.monotonic)
    elected_after: float | None = None
    _killed: tuple[int, float] | None = None
    _last_line: str = ""
    _last_acks: tuple[float, int] = (0.0, 0)

    def say(self, text: str) -> None:
        """A line with the seconds since the start."""
        self.console.print(f"[dim]{time.monotonic() - self.started:6.1f} s[/dim]  {text}")

    def leader_killed(self, broker_id: int) -> None:
        """Start the clock of the election."""
        self._killed = (broker_id, time.monotonic())
        self.elected_after = None

    async def run(self) -> None:
        """Look and print until cancelled."""
        async with Admin(bootstrap_servers=self.bootstrap) as admin:
            while True:
                try:
                    async with asyncio.timeout(2.0):
                        await self._look(admin)
                except (BarnabasError, TimeoutError):
                    pass  # the broker that was asked is the one that died; ask again
                await asyncio.sleep(0.1 if self._killed and self.elected_after is None else 0.5)

    async def _look(self, admin: Admin) -> None:
        topic = (await admin.describe_topics([self.topic]))[0]
        ends = await admin.end_offsets(self.topic) if self._all_led(topic.partitions) else {}
        lanes = "  ".join(
            f"{p.partition}:[bold]{p.leader_id if p.leader_id >= 0 else '-'}[/bold]"
            f"{sorted(p.in_sync_replicas)}"
            for p in topic.partitions
        )
        if self._killed and self.elected_after is None:
            broker_id, when = self._killed
            if all(p.leader_id not in (broker_id, -1) for p in topic.partitions):
                self.elected_after = time.monotonic() - when
                self.say(
                    f"[green]new leaders everywhere, {self.elected_after:.1f} s after the kill"
                )
        now, acked = time.monotonic(), self.deliveries.acked_count
        rate = (acked - self._last_acks[1]) / max(now - self._last_acks[0], 1e-6)
        line = f"{lanes}  HW sum {sum(ends.values()):>7,}"
        if line != self._last_line:
            self.say(f"leader[ISR] {line}  {rate:>8,.0f} acks/s")
        self._last_line, self._last_acks = line, (now, acked)

    @staticmethod
    def _all_led(partitions: list) -> bool:  # type: ignore[type-arg]
        return all(p.leader_id >= 0 for p in partitions)

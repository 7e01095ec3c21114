"""The longest time between two acknowledgements of each partition, around a broker's end."""

import asyncio
import time
from dataclasses import dataclass, field

# After a broker's end a partition has recovered when this many records have been acknowledged.
WELL_AFTER_ACKS = 50
WATCHED_SECONDS = 2.0
PATIENCE_SECONDS = 60.0


@dataclass
class Gaps:
    """Call `acked` at every acknowledgement, and `begin` before a broker's end."""

    partitions: int
    longest: dict[int, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _last: dict[int, float] = field(default_factory=dict)
    _acked: dict[int, int] = field(default_factory=dict)

    def begin(self) -> None:
        self.longest = {}
        self._acked = {}

    def acked(self, partition: int) -> None:
        now = time.monotonic()
        last = self._last.get(partition, now)
        self.longest[partition] = max(self.longest.get(partition, 0.0), now - last)
        self._last[partition] = now
        self._acked[partition] = self._acked.get(partition, 0) + 1

    def all_acked(self, count: int) -> bool:
        """Whether every partition has `count` acknowledgements since `begin`."""
        return all(self._acked.get(p, 0) >= count for p in range(self.partitions))

    async def worst_after(self, ended: float) -> float:
        """Wait until all partitions have recovered; returns the longest gap of any, in seconds.

        The broker ended at `ended`. Raises RuntimeError for a partition that does not recover.
        """
        self._acked = {}
        deadline = ended + PATIENCE_SECONDS
        while not self.all_acked(WELL_AFTER_ACKS) or time.monotonic() < ended + WATCHED_SECONDS:
            if time.monotonic() > deadline:
                raise RuntimeError(f"not acknowledged for {PATIENCE_SECONDS:g} s: {self._acked}")
            await asyncio.sleep(0.01)
        return max(self.longest.values())

"""The longest time between two acknowledgements of each partition, around a broker's end."""

import asyncio
import time
from dataclasses import dataclass, field

# After a broker's end a partition is well again when so many records have been acknowledged.
WELL_AFTER_ACKS = 50
WATCHED_SECONDS = 2.0
PATIENCE_SECONDS = 60.0


@dataclass
class Gaps:
    """Fed with every acknowledgement; `begin` before a broker's end, `longest` after it."""

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
        """Whether every partition got so many acknowledgements since `begin`."""
        return all(self._acked.get(p, 0) >= count for p in range(self.partitions))

    async def worst_after(self, ended: float) -> float:
        """The longest gap of any partition, known once all are well again; the broker's end was at
        `ended`. RuntimeError for a partition that does not come back: it has no gap to report."""
        self._acked = {}
        deadline = ended + PATIENCE_SECONDS
        while not self.all_acked(WELL_AFTER_ACKS) or time.monotonic() < ended + WATCHED_SECONDS:
            if time.monotonic() > deadline:
                raise RuntimeError(f"not acknowledged for {PATIENCE_SECONDS:g} s: {self._acked}")
            await asyncio.sleep(0.01)
        return max(self.longest.values())


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that `percent` of them do not exceed."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]

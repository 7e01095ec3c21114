"""Clocks, as an interface that the simulator implements too."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for waiting, one for stamping records."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes backwards. The event loop's own time."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970 in UTC, as records carry them."""
        ...


class SystemClock:
    """The machine's clocks; `monotonic` is the running event loop's time."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

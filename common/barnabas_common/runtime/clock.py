"""Clocks, as an interface that the simulator implements too."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one to measure waits, one for timestamps."""

    def monotonic(self) -> float:
        """The event loop's time: seconds since an arbitrary start, which never decrease."""
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

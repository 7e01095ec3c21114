"""The deadlines of all parked requests: one heap, and one timer of the event loop.

A parked request is a future: True when it was woken, False when its time ran out. A timer for each
request would cost more than the request itself. Here a request that is woken in time costs one push
to the heap; its entry is dropped when its deadline comes up, or when most entries are such
leftovers.
"""

import asyncio
import heapq
import math
from collections.abc import Callable

Waiter = asyncio.Future[bool]

_COMPACT_ABOVE = 1024


class Deadlines:
    """`now` is the event loop's time in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heap: list[tuple[float, int, Waiter]] = []
        self._sequence = 0
        self._timer: asyncio.Handle | None = None
        self._timer_at = math.inf
        self._compact_above = _COMPACT_ABOVE

    def __len__(self) -> int:
        return len(self._heap)

    def park(self, deadline: float) -> Waiter:
        """Return a waiter that becomes False at `deadline` unless `wake` was called before."""
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        self._sequence += 1
        heapq.heappush(self._heap, (deadline, self._sequence, waiter))
        if len(self._heap) > self._compact_above:
            self._compact()
        if deadline < self._timer_at:
            self._arm(loop)
        return waiter

    def close(self) -> None:
        """Let the time of every parked request run out now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_at = None, math.inf
        for _, _, waiter in sorted(self._heap):
            _complete(waiter, False)
        self._heap.clear()

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, math.inf
        if self._heap:
            # Kept here because uvloop's handles do not always know their time.
            self._timer_at = self._heap[0][0]
            self._timer = loop.call_at(self._timer_at, self._expire)

    def _expire(self) -> None:
        self._timer, self._timer_at = None, math.inf
        now = self._now()
        while self._heap and (self._heap[0][0] <= now or self._heap[0][2].done()):
            _complete(heapq.heappop(self._heap)[2], False)
        self._arm(asyncio.get_running_loop())

    def _compact(self) -> None:
        self._heap = [entry for entry in self._heap if not entry[2].done()]
        heapq.heapify(self._heap)
        self._compact_above = max(_COMPACT_ABOVE, 2 * len(self._heap))


def wake(waiter: Waiter) -> None:
    """End the wait with True; does nothing if it has ended already."""
    _complete(waiter, True)


def _complete(waiter: Waiter, woken: bool) -> None:
    if not waiter.done():
        waiter.set_result(woken)

"""Gives up the ZooKeeper session of a blocked event loop.

Kazoo keeps a session open from its own threads. So while the event loop is blocked (by a bug, or by
a system call that does not return) the broker would stay registered, leader and controller without
serving any request. A thread checks whether the loop runs, and ends the session if it does not.
When the loop runs again it finds the session expired, and the broker registers again.

Time in which this thread did not run does not count. The process or the machine was paused then,
and the servers expire the session because it sent no heartbeats.
"""

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

# How long the loop may be blocked, as a part of the session timeout. (In Kafka a blocked thread
# ends no session. A pause of the JVM stops all threads, and then the whole timeout applies.)
PATIENCE = 2 / 3
TICKS = 10


class StallMeter:
    """Measures how long a loop has not run while its process ran.

    `tick_seconds` is the planned time between two calls of `look`.
    """

    def __init__(self, tick_seconds: float) -> None:
        self.stalled_seconds = 0.0
        self._longest_tick = 2 * tick_seconds
        self._turns = 0

    def look(self, elapsed: float, turns: int) -> float:
        """Return for how many seconds the loop has not run.

        `elapsed` is the time since the last call, in seconds; `turns` counts the loop's turns since
        the start.
        """
        if turns != self._turns:
            self._turns, self.stalled_seconds = turns, 0.0
        else:
            self.stalled_seconds += min(elapsed, self._longest_tick)
        return self.stalled_seconds


class LoopWatchdog:
    """Calls `give_up(seconds)` once, on its own thread, when the loop has been blocked too long.

    `post` schedules a function on the loop; it is called from the watchdog's thread.
    """

    def __init__(
        self,
        session_timeout_seconds: float,
        post: Callable[[Callable[[], None]], None],
        give_up: Callable[[float], None],
    ) -> None:
        self._bound = PATIENCE * session_timeout_seconds
        self._tick = self._bound / TICKS
        self._post = post
        self._give_up = give_up
        self._turns = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; returns immediately, and `give_up` is not called any more."""
        self._done.set()

    def _watch(self) -> None:
        meter, last = StallMeter(self._tick), time.monotonic()
        self._post(self._turned)
        while not self._done.wait(self._tick):
            now = time.monotonic()
            elapsed, last = now - last, now
            stalled = meter.look(elapsed, self._turns)
            if stalled == 0.0:
                self._post(self._turned)  # the last one has run
            elif stalled >= self._bound and not self._done.is_set():
                self._give_up(stalled)
                return

    def _turned(self) -> None:
        """Called on the loop, which therefore runs."""
        self._turns += 1

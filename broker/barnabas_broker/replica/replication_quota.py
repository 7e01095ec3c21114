"""The rate at which throttled replicas may be copied (KIP-73), so that clients keep bandwidth.

It is a token bucket that fills at that rate and holds one second's worth. Copied bytes are taken
out. An answer is never shortened, so the bucket may become negative, and nothing more is copied
until it has filled again. (Kafka measures the rate of the last eleven seconds.)
"""

from collections.abc import Callable

BURST_SECONDS = 1.0


class ReplicationQuota:
    """One direction of one broker; `rate` returns bytes per second and is called at each use."""

    def __init__(self, rate: Callable[[], int], now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        self._filled_at = now()
        self._available = rate() * BURST_SECONDS

    def record(self, size: int) -> None:
        """Note that `size` bytes of throttled replicas were copied."""
        self._fill()
        self._available -= size

    def is_exceeded(self) -> bool:
        """Whether nothing may be copied now."""
        self._fill()
        return self._available <= 0

    def wait(self) -> float:
        """Seconds until something may be copied again; at most one, because the rate may change."""
        self._fill()
        rate = self._rate()
        owed = 1 - self._available
        if owed <= 0:
            return 0.0
        return min(1.0, owed / rate) if rate > 0 else 1.0

    def _fill(self) -> None:
        now, rate = self._now(), self._rate()
        self._available = min(
            self._available + (now - self._filled_at) * rate, rate * BURST_SECONDS
        )
        self._filled_at = now

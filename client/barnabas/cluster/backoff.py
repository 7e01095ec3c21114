"""How long to wait before the next attempt (KIP-580: exponential, with 20 % jitter)."""

from dataclasses import dataclass

from barnabas_common.runtime import Randomness

JITTER = 0.2


@dataclass(frozen=True)
class Backoff:
    """Doubles from `initial_ms` to `max_ms`; the jitter keeps clients from retrying in step."""

    initial_ms: int
    max_ms: int
    randomness: Randomness

    def seconds(self, failures: int) -> float:
        """The pause after this many failures in a row (1 is the first)."""
        doubled = self.initial_ms << min(max(failures, 1) - 1, 20)
        spread = 1 + JITTER * (2 * self.randomness.random() - 1)
        return min(doubled, self.max_ms) * spread / 1000

"""How a lab ends: its checks, and whether all of them hold."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A claim, whether it held, and what was seen."""

    claim: str
    holds: bool
    seen: str


@dataclass(frozen=True)
class Outcome:
    """How a lab ended. `broken` is the reason if the scenario could not be completed."""

    lab: str
    checks: tuple[Check, ...]
    seconds: float
    broken: str | None = None

    @property
    def passed(self) -> bool:
        """Whether there were checks, and all of them held."""
        return self.broken is None and bool(self.checks) and all(c.holds for c in self.checks)

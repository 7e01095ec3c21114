"""What a lab is: a question, a scenario on a real cluster, and what must come of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas_broker.labs.stage import Stage


@dataclass(frozen=True)
class Prediction:
    """What the learner is asked before the scenario runs; `answer` is an index of `choices`."""

    question: str
    choices: tuple[str, ...]
    answer: int
    because: str


@dataclass(frozen=True)
class Lab:
    """One lab. `page` is the guide's page about its mechanism, without `.md`.

    `config` holds the settings of the cluster's brokers. `switch` holds the settings that bring
    the fault back which the lab is about, empty when no setting does: with them the lab's checks
    must fail. With `pause_points` the stage can hold brokers at named places.
    """

    name: str
    title: str
    page: str
    prediction: Prediction
    scenario: Callable[["Stage"], Awaitable[None]]
    config: Mapping[str, str] = field(default_factory=dict)
    switch: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 3
    pause_points: bool = False


@dataclass(frozen=True)
class Check:
    """One thing that had to hold: what, whether it did, and what was seen."""

    claim: str
    holds: bool
    seen: str


@dataclass(frozen=True)
class Outcome:
    """How a lab ended. `broken` tells why the scenario could not be played to its end."""

    lab: str
    checks: tuple[Check, ...]
    seconds: float
    broken: str | None = None

    @property
    def passed(self) -> bool:
        """Everything that was checked holds, and something was."""
        return self.broken is None and bool(self.checks) and all(c.holds for c in self.checks)

"""Options of the clients that only some runs have; each family is drawn from a stream of its own,
so that the other options of a seed stay what they were."""

import random
from dataclasses import dataclass
from typing import Any

GROWTH_ONE_IN = 12


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions:
    """`growth`: how many partitions the topic gets while it is in use, one at a time."""

    growth: int = 0


def draw_workload(seed: int) -> dict[str, Any]:
    """Draw these options of a seed; only those that differ from their defaults."""
    return _growth(random.Random(f"{seed}/growth"))


def _growth(chance: random.Random) -> dict[str, Any]:
    if chance.randrange(GROWTH_ONE_IN):
        return {}
    return {"growth": chance.choice([1, 1, 2])}

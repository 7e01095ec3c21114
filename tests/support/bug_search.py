"""How many random schedules it takes to find each seeded bug.

    python -m tests.support.bug_search [SCHEDULES] [BUG ...]

prints the table of `docs/simulator-bugs.md`. A simulator that needs more of them than before got
weaker: its faults or its workload.
"""

import logging
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas_simulator.invariants import InvariantViolation

from tests.support.random_faults import run_seed
from tests.support.seeded_bugs import SEEDED_BUGS, SeededBug

BUDGET = 200


class Found(NamedTuple):
    """`by`: the invariant that tripped, or what else failed."""

    schedules: int
    seed: int
    by: str


def find(
    bug: SeededBug, seeds: Iterable[int], run: Callable[[int], object] = run_seed
) -> Found | None:
    """Run schedules with the bug in the code until one fails; None if none does."""
    for schedules, seed in enumerate(seeds, 1):
        with bug.planted():
            try:
                run(seed)
            except InvariantViolation as violation:
                return Found(schedules, seed, violation.name)
            except Exception as error:
                return Found(schedules, seed, f"{type(error).__name__}: {error}"[:60])
    return None


def main(budget: int, names: list[str]) -> None:
    logging.disable(logging.CRITICAL)
    for name in names:
        bug = SEEDED_BUGS[name]
        found = find(bug, range(budget))
        result = f"{found.schedules} (seed {found.seed}) | {found.by}" if found else "not found |"
        print(f"| {name} | {bug.reopens} | {result} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else BUDGET, sys.argv[2:] or list(SEEDED_BUGS))

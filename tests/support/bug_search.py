"""How many random schedules it takes to find each seeded bug.

    python -m tests.support.bug_search [SCHEDULES] [BUG ...] [steps]

prints the table of `docs/simulator-bugs.md`: by safety schedules of a campaign, or with `steps` by
its short ones. If a bug takes more schedules than before, the simulator's faults
or its workload have become weaker. A schedule that also fails without the bug found something else,
and does not count.
"""

import logging
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas_simulator.campaign.many import run_seed
from barnabas_simulator.campaign.options import Mode

from tests.support.cleaner_bugs import CLEANER_BUGS
from tests.support.group_bugs import GROUP_BUGS
from tests.support.seeded_bugs import SEEDED_BUGS, SeededBug
from tests.support.transaction_bugs import TRANSACTION_BUGS

BUDGET = 200
BUGS = SEEDED_BUGS | CLEANER_BUGS | GROUP_BUGS | TRANSACTION_BUGS
ELEVEN = ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M11", "M12", "M13", "M16")

Judge = Callable[[int], str | None]
"""Runs the schedule of a seed; returns what was found wrong, None if nothing."""


class Found(NamedTuple):
    """`by` names the violated invariant, or the other check that failed."""

    schedules: int
    seed: int
    by: str


def safety(seed: int) -> str | None:
    """Run the safety schedule of this seed; returns what failed, or None."""
    return _failure(seed, Mode.SAFETY)


def steps(seed: int) -> str | None:
    """Run the schedule of steps of this seed; returns what failed, or None."""
    return _failure(seed, Mode.STEPS)


def _failure(seed: int, mode: Mode) -> str | None:
    outcome = run_seed(seed, mode)
    return None if outcome.violation is None else outcome.kind


def find(bug: SeededBug, seeds: Iterable[int], judge: Judge = safety) -> Found | None:
    """Run schedules with the bug in the code until one fails because of it; None if none does."""
    for schedules, seed in enumerate(seeds, 1):
        with bug.planted():
            by = judge(seed)
        if by is not None and judge(seed) is None:
            return Found(schedules, seed, by)
    return None


def main(budget: int, names: list[str], judge: Judge) -> None:
    logging.disable(logging.CRITICAL)
    for name in names:
        bug = BUGS[name]
        found = find(bug, range(budget), judge)
        result = f"{found.schedules} | {found.by}" if found else f"none of {budget} | "
        print(f"| {name} | {bug.reopens} | {result} |", flush=True)


if __name__ == "__main__":
    chosen = [name for name in sys.argv[2:] if name != "steps"]
    main(
        int(sys.argv[1]) if sys.argv[1:] else BUDGET,
        chosen or list(BUGS),
        steps if "steps" in sys.argv else safety,
    )

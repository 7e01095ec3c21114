"""How many random schedules it takes to find each seeded bug.

    python -m tests.support.bug_search [SCHEDULES] [BUG ...] [short]

prints the table of `docs/simulator-bugs.md`: by the schedules of a campaign, or with `short` by the
shorter ones of `random_faults`. If a bug takes more schedules than before, the simulator's faults
or its workload have become weaker. A schedule that also fails without the bug found something else,
and does not count.
"""

import logging
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas_simulator.campaign.faults.plan import plan
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.schedule import run_schedule
from barnabas_simulator.invariants import InvariantViolation

from tests.support.cleaner_bugs import CLEANER_BUGS
from tests.support.group_bugs import GROUP_BUGS
from tests.support.random_faults import run_seed
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


def random_faults(seed: int) -> str | None:
    """Run `RandomFaults`; returns what failed, or None."""
    try:
        run_seed(seed)
    except InvariantViolation as violation:
        return violation.name
    except Exception as error:
        return type(error).__name__
    return None


def campaign(seed: int) -> str | None:
    """Run a campaign's schedule of this seed; returns what failed, or None."""
    options = Options.draw(seed)
    outcome = run_schedule(options, plan(options))
    return None if outcome.violation is None else outcome.kind


def find(bug: SeededBug, seeds: Iterable[int], judge: Judge = campaign) -> Found | None:
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
    chosen = [name for name in sys.argv[2:] if name != "short"]
    main(
        int(sys.argv[1]) if sys.argv[1:] else BUDGET,
        chosen or list(BUGS),
        random_faults if "short" in sys.argv else campaign,
    )

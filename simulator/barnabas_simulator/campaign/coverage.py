"""How often everything happened in a campaign: what never happened was never tested."""

from collections import Counter

from barnabas.events import EventKind

from barnabas_simulator.campaign.admin_work import WEIGHTS
from barnabas_simulator.campaign.faults import FaultKind

ENOUGH_RUNS = 150

# What no fault of a campaign brings about; each has tests of its own.
ELSEWHERE = frozenset(
    {
        # A mistake in a controller's own code: its traceback is a violation of the run.
        EventKind.CONTROLLER_STANDS_ASIDE,
    }
)


def wanted() -> list[str]:
    """Everything that must occur in a campaign of `ENOUGH_RUNS`."""
    return [
        *(f"fault: {kind}" for kind in FaultKind),
        *(f"event: {kind}" for kind in EventKind if kind not in ELSEWHERE),
        *(f"admin: {act}" for act in WEIGHTS),
    ]


def missing(counts: Counter[str]) -> list[str]:
    """What never occurred, and should have."""
    return [name for name in wanted() if not counts[name]]


def table(counts: Counter[str]) -> list[str]:
    """One line for each thing, and how often it occurred."""
    names = sorted({*counts, *wanted()})
    return [f"{counts[name]:>9} {name}" for name in names]

"""How often each thing happened in a campaign: what never happened was not tested."""

from collections import Counter

from barnabas_common.events import EventKind

from barnabas_simulator.campaign.clients.admin_work import WEIGHTS
from barnabas_simulator.campaign.faults.faults import FaultKind
from barnabas_simulator.campaign.judge import states, varied
from barnabas_simulator.campaign.judge.verdict import ENDS
from barnabas_simulator.invariants.excuses import LOST

ENOUGH_RUNS = 150

# Events that no fault of a campaign causes; they have their own tests.
ELSEWHERE = frozenset(
    {
        # A mistake in a controller's own code: its traceback is a violation of the run.
        EventKind.CONTROLLER_STANDS_ASIDE,
        # Too many connections, old copies of a data directory: not drawn yet.
        EventKind.CONNECTION_LIMIT_REACHED,
        EventKind.CONNECTION_LIMIT_RELIEVED,
        EventKind.LOG_DIRECTORY_OUTDATED,
        # Too few brokers, bit rot in internal topics, deleted groups: not drawn yet.
        EventKind.OFFSETS_TOPIC_REFUSED,
        EventKind.TRANSACTION_TOPIC_REFUSED,
        EventKind.COORDINATOR_LOAD_FAILED,
        EventKind.COORDINATOR_RECORD_UNREADABLE,
        EventKind.GROUP_GONE,
        EventKind.GROUP_OFFSETS_REMOVED,
    }
)


MANY_RUNS = 1_500
# Events that some hundred runs may lack by chance.
RARE = frozenset(
    {
        EventKind.TRANSACTION_MARKERS_REFUSED,
        EventKind.LOG_NOT_COMPACTED,
        EventKind.LOG_DAMAGED,
        EventKind.COMMITTED_RECORDS_TRUNCATED,
    }
)
# Without them the judge of losses has judged nothing.
EXCUSED = ("excused: unclean elections", f"excused: {LOST}")


def wanted(runs: int = ENOUGH_RUNS) -> list[str]:
    """Return everything that must occur in a campaign of so many runs."""
    is_long = runs >= MANY_RUNS
    left_out = ELSEWHERE if is_long else ELSEWHERE | RARE
    return [
        *(f"fault: {kind}" for kind in FaultKind),
        *(f"event: {kind}" for kind in EventKind if kind not in left_out),
        *(f"admin: {act}" for act in WEIGHTS),
        *ENDS,
        *varied.WANTED,
        *((*varied.WANTED_IN_MANY, *states.wanted(), *EXCUSED) if is_long else ()),
    ]


def missing(counts: Counter[str], runs: int = ENOUGH_RUNS) -> list[str]:
    """Return what should have occurred in so many runs and did not."""
    return [name for name in wanted(runs) if not counts[name]]


def table(counts: Counter[str]) -> list[str]:
    """Return a line with the count of each thing, and the tables of the states."""
    names = sorted({*counts, *wanted(MANY_RUNS)})
    things = [name for name in names if not name.startswith(states.PREFIX)]
    lines = [f"{counts[name]:>9} {name}" for name in things]
    return [*lines, "", *states.tables(counts), ""]

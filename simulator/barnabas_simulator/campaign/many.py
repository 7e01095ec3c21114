"""Many runs, in several processes; a failed run is repeated, shrunk and saved."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plans.plan import plan
from barnabas_simulator.campaign.replay_file import Replay
from barnabas_simulator.campaign.saved_runs import SavedRuns
from barnabas_simulator.campaign.schedule import Outcome, run_schedule
from barnabas_simulator.campaign.shrink import fails_alike, shrink
from barnabas_simulator.campaign.worker import Worker

RUNS_PER_PROCESS = 50


@dataclass
class Campaign:
    """The outcomes of all runs; `counts` sums every kind of fault, event and act."""

    outcomes: list[Outcome] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.violation is not None]

    def __str__(self) -> str:
        acked = sum(outcome.acked for outcome in self.outcomes)
        return f"{acked} acknowledged records, {len(self.failed)} violations"

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.counts.update(outcome.counts)


def mode_of(seed: int, mode: Mode | None) -> Mode:
    """Return the mode of a run; by default every tenth has steps, every third of the others
    tests liveness."""
    if mode is not None:
        return mode
    if seed % 10 == 9:
        return Mode.STEPS
    return Mode.LIVENESS if seed % 3 == 2 else Mode.SAFETY


def run_seed(seed: int, mode: Mode | None = None) -> Outcome:
    """Run the schedule of a seed."""
    options = Options.draw(seed, mode_of(seed, mode))
    return run_schedule(options, plan(options))


def run_many(seeds: Iterable[int], mode: Mode | None = None, jobs: int = 1) -> Iterator[Outcome]:
    """Yield the outcomes in the order of the seeds."""
    seeds = list(seeds)
    if jobs == 1:
        for seed in seeds:
            yield run_seed(seed, mode)
        return
    work = partial(run_seed, mode=mode)
    workers = [Worker(work, seeds[first::jobs], RUNS_PER_PROCESS) for first in range(jobs)]
    try:
        for number in range(len(seeds)):
            yield workers[number % jobs].next()
    finally:
        for worker in workers:
            worker.end()


@dataclass(frozen=True)
class Found:
    """A failed run, its whole schedule, and the file that has it; None if it was printed."""

    outcome: Outcome
    whole: Replay
    path: Path | None


def keep(outcome: Outcome, mode: Mode | None, saved: SavedRuns) -> Found:
    """Save the whole schedule of a failed run."""
    options = Options.draw(outcome.seed, mode_of(outcome.seed, mode))
    whole = Replay(options, plan(options), outcome.kind, outcome.violation or "")
    return Found(outcome, whole, saved.keep(whole))


def investigate(found: Found, saved: SavedRuns) -> None:
    """Repeat a failed run, shrink it, and save what is left with its story beside the whole run."""
    outcome, (options, faults) = found.outcome, found.whole.schedule
    saved.tell(f"  options {options}")
    for fault in faults:
        saved.tell(f"  {fault.at:7.3f} {fault}")
    again = run_schedule(options, faults)
    same = (again.kind, again.trace) == (outcome.kind, outcome.trace)
    saved.tell(
        "  confirmed: the same again" if same else f"  NOT the same again: {again.violation}"
    )
    if again.kind != outcome.kind:
        return
    small, few = shrink(options, faults, fails_alike(outcome.kind))
    shown = run_schedule(small, few, tell=True)
    shrunk = Replay(small, few, shown.kind, shown.violation or "")
    path = saved.keep_shrunk(shrunk, shown.short_story, found.path)
    saved.tell(f"  shrunk from {len(faults)} to {len(few)} faults: {path or 'printed above'}")

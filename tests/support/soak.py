"""Hours of campaigns on new seeds and of kill tests, in turn: what `make soak HOURS=n` runs.

    python -m tests.support.soak HOURS [--seed N]

A campaign plays schedules on virtual time; the kill tests end real brokers and controllers with
kill -9. A failure ends neither. Each soak has a folder of its own under `soak/`, with the replay of
each failing schedule, the output of each failing step, and the report that is also printed. The
exit code is 1 if anything failed, and 130 after Ctrl-C if nothing did.
"""

import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from barnabas_simulator.campaign.replay_file import Replay
from barnabas_simulator.campaign.saved_runs import SHRUNK

from tests.support.soak_step import Step, interrupts, run_step

SCHEDULES = 50
KILL_TESTS = (
    "tests/integration/test_kill.py",
    "tests/integration/test_idempotence.py",
    "tests/integration/test_exact_copy.py",
    "tests/integration/test_group_members.py",
    "tests/integration/test_group_coordinator_kills.py",
    "tests/integration/test_last_replica_standing.py",
    "tests/integration/test_compaction_kills.py",
)
FAILED, REFUSED, INTERRUPTED = 1, 2, 130

_RUNS = re.compile(r"(\d+)(?: of \d+)? runs, (\d+) acknowledged records, (\d+) violations")
_PROGRESS = re.compile(r"^(\d+) of \d+ runs", re.MULTILINE)
_PASSED_TESTS = re.compile(r"(\d+) passed")
_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) .*", re.MULTILINE)


def campaign_command(seed: int, folder: Path) -> list[str]:
    runs = ["run", str(SCHEDULES), "--seed", str(seed), "--out", str(folder)]
    return [sys.executable, "-m", "barnabas_simulator.campaign", *runs]


def kill_command() -> list[str]:
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *options, *KILL_TESTS]


def say(text: str) -> None:
    """Print without delay, also into a file."""
    print(text, flush=True)


@dataclass
class Soak:
    """`campaign` returns the command for the schedules from a seed on."""

    folder: Path
    hours: float
    seed: int
    campaign: Callable[[int, Path], Sequence[str]] = campaign_command
    kill_tests: Callable[[], Sequence[str]] = kill_command
    clock: Callable[[], float] = time.monotonic
    tell: Callable[[str], None] = say
    schedules: int = field(default=0, init=False)
    acked: int = field(default=0, init=False)
    violations: int = field(default=0, init=False)
    rounds: int = field(default=0, init=False)
    passed_tests: int = field(default=0, init=False)
    failed_steps: int = field(default=0, init=False)
    failures: list[str] = field(default_factory=list, init=False)
    was_interrupted: bool = field(default=False, init=False)

    def run(self) -> None:
        """Run campaigns and kill tests in turn until the time is over, or until Ctrl-C."""
        began, self._next_seed = self.clock(), self.seed
        steps = cycle((self._play_schedules, self._kill_processes))
        try:
            while not self.was_interrupted and self.clock() - began < self.hours * 3600:
                next(steps)()
        except KeyboardInterrupt:
            self.was_interrupted = True
        self._elapsed = self.clock() - began

    def _play_schedules(self) -> None:
        first, self._next_seed = self._next_seed, self._next_seed + SCHEDULES
        step = run_step(self.campaign(first, self.folder))
        progress = [(runs, 0, 0) for runs in _PROGRESS.findall(step.output)]
        figures = _RUNS.findall(step.output) or progress or [(0, 0, 0)]
        runs, acked, violations = map(int, figures[-1])
        self.schedules += runs
        self.acked += acked
        self.violations += violations
        self._ended(step, f"campaign of seeds {first} to {self._next_seed - 1}", f"seeds-{first}")

    def _kill_processes(self) -> None:
        step = run_step(self.kill_tests())
        number = self.rounds + 1
        self.rounds += not step.was_interrupted
        self.passed_tests += int((_PASSED_TESTS.findall(step.output) or [0])[-1])
        self._ended(step, f"kill tests, round {number}", f"kill-tests-{number}")

    def _ended(self, step: Step, what: str, name: str) -> None:
        """Report how a step ended; keep the output of one that did not pass."""
        self.was_interrupted = step.was_interrupted
        self.tell(f"{what}: {step.how} after {step.seconds:.0f} s")
        if step.passed:
            return
        where = self._keep(name, step.output)
        tests = [f"    {test}" for test in _FAILED_TEST.findall(step.output)]
        if tests or not step.was_interrupted:
            self.failed_steps += 1
            self.failures += [f"  {what}: {step.how}; output: {where}", *tests]

    def _keep(self, name: str, output: str) -> str:
        path = self.folder / f"{name}.log"
        try:
            path.write_text(output, encoding="utf-8")
        except OSError as error:
            self.tell(output)
            return f"printed above, because {path} cannot be written: {error.strerror}"
        return str(path)

    # ---- the report

    def report(self) -> str:
        last = self._next_seed - 1
        seeds = f"seeds {self.seed} to {last}" if last >= self.seed else "no seeds"
        hours = f"{self._elapsed / 3600:.2f} of {self.hours:g} hours"
        saved = self._saved_runs()
        return "\n".join(
            [
                f"{hours}{', interrupted' if self.was_interrupted else ''}",
                f"{self.schedules} schedules ({seeds}), {self.acked} acknowledged records,"
                f" {max(self.violations, len(saved))} violations",
                *saved,
                f"{self.rounds} rounds of kill tests, {self.passed_tests} tests passed",
                f"{self.failed_steps} failed campaigns and rounds",
                *self.failures,
            ]
        )

    def _saved_runs(self) -> list[str]:
        """A line for each saved run: its rule, and how to play it again, shrunk if it was."""
        lines = []
        for path in sorted(self.folder.glob("seed-*.json")):
            if path.stem.endswith(SHRUNK):
                continue
            shrunk = path.with_stem(f"{path.stem}{SHRUNK}")
            command = f"barnabas simulate replay {shrunk if shrunk.exists() else path}"
            with suppress(OSError, ValueError):
                saved = Replay.load(path)
                lines.append(f"  seed {saved.options.seed}: {saved.kind}: {command}")
        return lines

    @property
    def exit_code(self) -> int:
        if self.failures or self.violations or self._saved_runs():
            return FAILED
        return INTERRUPTED if self.was_interrupted else 0


def hours_of(text: str) -> float:
    """Raises ValueError unless the text is a positive number."""
    with suppress(ValueError):
        hours = float(text)
        if math.isfinite(hours) and hours > 0:
            return hours
    raise ValueError(f"HOURS must be a number above 0, not {text!r}")


def seed_of(text: str) -> int:
    """Raises ValueError unless the text is a natural number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"SEED must be a whole number of at most 18 digits, not {text!r}")
    return int(text)


def main(arguments: Sequence[str], root: Path = Path("soak"), **fakes: Any) -> int:
    """Run a soak; returns the exit code. `fakes` replace the parts of `Soak`."""
    now = time.time_ns() // 1_000_000
    try:
        if arguments[1:2] not in ([], ["--seed"]) or len(arguments) not in (1, 3):
            raise ValueError("usage: python -m tests.support.soak HOURS [--seed N]")
        hours = hours_of(arguments[0])
        seed = seed_of(arguments[2]) if arguments[2:] else now
        folder = root / f"{time.strftime('%Y%m%d-%H%M%S')}-{seed}"
        folder.mkdir(parents=True)
    except ValueError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"{root} cannot be written: {error.strerror}", file=sys.stderr)
        return REFUSED
    soak = Soak(folder, hours, seed, **fakes)
    with interrupts():
        soak.tell(f"{hours:g} hours from seed {seed} on; failures are kept in {folder}")
        soak.run()
        report = soak.report()
        soak.tell(report)
        with suppress(OSError):
            (folder / "report.txt").write_text(f"{report}\n", encoding="utf-8")
    return soak.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""See the package."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.support.opposites import PACKAGES, ROOT, copy_packages, turned_round
from tests.support.single_line_bugs import SINGLE_LINE_BUGS
from tests.support.single_line_bugs.bug import SingleLineBug

FIRST_SEED = 7_000_000
SHOWN = 160
# A schedule takes some ten seconds. One that does not end within this has found the bug too.
SECONDS_PER_SCHEDULE = 120.0


class Played(NamedTuple):
    """`schedules` were begun, and the last of them failed by the rule `by`; empty: none failed."""

    schedules: int
    by: str
    why: str


def play(copy: Path, first: int, count: int) -> Played:
    """Play seeds with the packages of a copy, until one fails or does not end."""
    path = os.pathsep.join([str(ROOT), *(str(copy / package) for package in PACKAGES)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tests.support.single_line_bugs.play", str(first), str(count)]
    pipe = subprocess.PIPE
    running = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True
    )
    try:
        out, errors = running.communicate(timeout=SECONDS_PER_SCHEDULE * count)
    except subprocess.TimeoutExpired:
        running.kill()
        out, _ = running.communicate()
        return Played(len(out.splitlines()) + 1, "no end", "")
    if running.returncode:
        raise RuntimeError(f"the schedules could not be played: {errors[-2000:]}")
    _, by, why = out.splitlines()[-1].split(" ", 2)
    return Played(len(out.splitlines()), by, why)


def find(bug: SingleLineBug, copy: Path, first: int, budget: int) -> Played:
    """Play seeds with the bug; a schedule that fails without it too does not count."""
    begun = 0
    while begun < budget:
        with turned_round(bug.edit, copy):
            played = play(copy, first + begun, budget - begun)
        begun += played.schedules
        if played.by and not play(copy, first + begun - 1, 1).by:
            return played._replace(schedules=begun)
    return Played(begun, "", "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.single_line_bugs")
    parser.add_argument("budget", type=int)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in SINGLE_LINE_BUGS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(SINGLE_LINE_BUGS)}")
    with tempfile.TemporaryDirectory() as folder:
        copy_packages(Path(folder))
        for name in given.names or SINGLE_LINE_BUGS:
            found = find(SINGLE_LINE_BUGS[name], Path(folder), given.seed, given.budget)
            result = f"{found.schedules} | {found.by}" if found.by else f"none of {given.budget} |"
            print(f"| {name} | {result} | {found.why[:SHOWN]}", flush=True)


if __name__ == "__main__":
    main()

"""Reversed rules: an edit of the code that breaks a rule, and the test that then fails.

`tests/rules` has the opposites of every rule in `docs/rules-*.md`. An edit replaces text that
occurs exactly once in its file, so that an opposite whose code has changed is noticed. It is made
in a copy of the packages; the tests import that copy.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("proto", "common", "client", "controller", "broker", "tools", "simulator", "spark")
FOLDERS = (
    "broker/barnabas_broker",
    "controller/barnabas_controller",
    "common/barnabas_common",
    "client/barnabas",
)
TIMEOUT_SECONDS = 120.0

# An edit that raises one of these does not reverse a rule: it is code that does not work.
BROKEN_CODE = ("ImportError", "ModuleNotFoundError", "SyntaxError", "NameError", "AttributeError",
               "TypeError", "UnboundLocalError")  # fmt: skip
_SUMMARY = re.compile(r"^FAILED .*?(?: - (.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Opposite:
    """`rule` is the beginning of a row, `file` is below one of `FOLDERS`, `test` below `tests/`.

    `edits` are pairs of the present text and its replacement.
    """

    rule: str
    file: str
    edits: tuple[tuple[str, str], ...]
    test: str


@dataclass(frozen=True)
class NoOpposite:
    """A rule that no edit of the code can reverse, and why."""

    rule: str
    why: str


def opposite(rule: str, file: str, old: str, new: str, test: str, *more: str) -> Opposite:
    """Return an opposite; `more` are further pairs of texts in the same file."""
    texts = (old, new, *more)
    return Opposite(rule, file, tuple(zip(texts[::2], texts[1::2], strict=True)), test)


class Section(NamedTuple):
    """The opposites of the rules below one heading of a table."""

    table: str
    heading: str
    rules: tuple[Opposite | NoOpposite, ...]

    @property
    def opposites(self) -> list[Opposite]:
        return [rule for rule in self.rules if isinstance(rule, Opposite)]


class Row(NamedTuple):
    """A row of a table, and the tests that it names."""

    heading: str
    rule: str
    tests: tuple[str, ...]

    def begins_with(self, text: str) -> bool:
        return self.rule.startswith(text)


_TEST = re.compile(r"`((?:unit|simulation|contract|integration)/[\w./]+(?:::\w+)?)`")


def rows(table: str) -> Iterator[Row]:
    """Yield the rows of all tables in a document, without the header lines."""
    heading, is_body = "", False
    for line in table.splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        is_body = line.startswith("|") and (is_body or line.startswith("|--"))
        if is_body and not line.startswith("|--"):
            yield Row(heading, line.split("|")[1].strip(), tuple(_TEST.findall(line)))


def gaps(table: str, sections: Iterable[Section]) -> list[str]:
    """Return a document's gaps: rules without an opposite, and rows whose first test does not fail.

    Tests on real processes are skipped when the first test is determined.
    """
    found, listed = [], list(rows(table))
    rules = [(section.heading, rule) for section in sections for rule in section.rules]
    for row in listed:
        of_row = [r for heading, r in rules if heading == row.heading and row.begins_with(r.rule)]
        if not of_row:
            found.append(f"{row.heading}: {row.rule}: no opposite")
            continue
        failing = [rule.test for rule in of_row if isinstance(rule, Opposite)]
        unnamed = [test for test in dict.fromkeys(failing) if test not in row.tests]
        found += [f"{row.heading}: {row.rule}: {test} is not named" for test in unnamed]
        quick = [test for test in row.tests if not test.startswith("integration/")]
        if failing and not unnamed and quick[0] not in failing:
            found.append(f"{row.heading}: {row.rule}: the first test is not one that fails")
    for heading, begins in dict.fromkeys((heading, rule.rule) for heading, rule in rules):
        count = sum(row.heading == heading and row.begins_with(begins) for row in listed)
        if count != 1:
            found.append(f"{heading}: {begins}: {count} rows begin so")
    return found


def path_of(file: str, root: Path = ROOT) -> Path:
    """Return the path of a file below one of `FOLDERS`. Raises ValueError unless it is unique."""
    (found,) = (root / folder / file for folder in FOLDERS if (root / folder / file).is_file())
    return found


def complaints(planted: Opposite) -> list[str]:
    """Return a line for each of its texts that does not occur exactly once."""
    text = path_of(planted.file).read_text()
    return [
        f"{planted.file}: {text.count(old)} times: {old!r}"
        for old, _ in planted.edits
        if text.count(old) != 1
    ]


def edited(planted: Opposite, text: str) -> str:
    for old, new in planted.edits:
        text = text.replace(old, new)
    return text


def copy_packages(target: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, target / package)


@contextmanager
def turned_round(planted: Opposite, copy: Path) -> Iterator[None]:
    """Reverse the rule in the copy of the packages until the end of the `with`."""
    file = path_of(planted.file, copy)
    text, stat = file.read_text(), file.stat()
    file.write_text(edited(planted, text))
    try:
        yield
    finally:
        file.write_text(text)
        # The compiled file is recognized by the time of its source.
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


class Verdict(NamedTuple):
    """`failures` are the errors of the failed tests.

    If it is empty, the tests passed or did not run.
    """

    passed: bool
    failures: tuple[str, ...]
    output: str

    @property
    def was_skipped(self) -> bool:
        """Whether a test could not run on this machine, for example without Java."""
        return self.passed and " skipped" in self.output

    @property
    def is_caught(self) -> bool:
        """Whether a test failed, and not because the planted code cannot run."""
        return bool(self.failures) and not any(
            failure.startswith(BROKEN_CODE) for failure in self.failures
        )


def run_tests(tests: Iterable[str], copy: Path, timeout: float = TIMEOUT_SECONDS) -> Verdict:
    """Run tests in a separate process, which imports the packages from the copy."""
    path = os.pathsep.join(str(copy / package) for package in PACKAGES)
    # Without compiled files, because a planted one could be mistaken for the present one.
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "1000",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=line", "-p", "no:cacheprovider",
               "-p", "no:xdist", "-o", "faulthandler_timeout=0", *tests]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            cwd=ROOT / "tests",
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as error:
        return Verdict(False, (), f"no end after {error.timeout:g} s")
    # 1: tests failed; everything else means that they could not be run.
    failures = tuple(_SUMMARY.findall(done.stdout)) if done.returncode == 1 else ()
    return Verdict(done.returncode == 0, failures, done.stdout + done.stderr)

"""Every rule in `docs/rules-*.md` has a test that fails when the rule is reversed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules import SECTIONS
from tests.support.opposites import (
    ROOT,
    Opposite,
    Section,
    complaints,
    copy_packages,
    edited,
    gaps,
    opposite,
    path_of,
    run_tests,
    turned_round,
)

OPPOSITES = [planted for section in SECTIONS for planted in section.opposites]
TABLES = sorted((ROOT / "docs").glob("rules-*.md"))


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_each_rule_has_an_opposite_and_names_the_test_that_notices_it(table: Path) -> None:
    sections = [section for section in SECTIONS if section.table == table.name]
    assert gaps(table.read_text(), sections) == []


def test_no_section_is_of_another_table() -> None:
    assert {section.table for section in SECTIONS} == {table.name for table in TABLES}


def test_each_edit_fits_the_code_as_it_is() -> None:
    assert [line for planted in OPPOSITES for line in complaints(planted)] == []
    for planted in OPPOSITES:
        ast.parse(edited(planted, path_of(planted.file).read_text()))


# ---- the edits themselves


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    copy = tmp_path_factory.mktemp("packages")
    copy_packages(copy)
    yield copy


@pytest.mark.slow
def test_without_an_edit_the_same_tests_pass(packages: Path) -> None:
    verdict = run_tests(sorted({planted.test for planted in OPPOSITES}), packages, timeout=600.0)
    assert verdict.passed, verdict.output


def name_of(planted: Opposite) -> str:
    return f"{planted.rule.strip('.` ')} ({OPPOSITES.index(planted)})"


@pytest.mark.slow
@pytest.mark.parametrize("planted", OPPOSITES, ids=name_of)
def test_a_rule_that_is_turned_round_is_noticed(planted: Opposite, packages: Path) -> None:
    with turned_round(planted, packages):
        verdict = run_tests([planted.test], packages)
    if verdict.was_skipped:
        pytest.skip("the test cannot run here")
    assert verdict.is_caught, verdict.output


# ---- the checks find what they are for

PURE = "replica/leader/high_watermark.py"
WITNESS = "unit/test_high_watermark.py::test_it_never_goes_back"


@pytest.mark.lengthy
def test_an_edit_that_changes_nothing_that_matters_is_not_noticed(packages: Path) -> None:
    harmless = opposite(
        "a rule", PURE, "progress.end_offset, *", "*[progress.end_offset], *", WITNESS
    )
    with turned_round(harmless, packages):
        verdict = run_tests([harmless.test], packages)
    assert verdict.passed and not verdict.is_caught


@pytest.mark.lengthy
def test_code_that_does_not_work_is_not_taken_for_an_opposite(packages: Path) -> None:
    for new in ("progress.no_such_offset, *", "no_such_name, *"):
        broken = opposite("a rule", PURE, "progress.end_offset, *", new, WITNESS)
        with turned_round(broken, packages):
            verdict = run_tests([broken.test], packages)
        assert verdict.failures and not verdict.is_caught, new


def test_the_copy_is_as_before_afterwards(packages: Path) -> None:
    file = path_of(PURE, packages)
    before = file.read_text(), file.stat().st_mtime_ns
    with turned_round(opposite("a rule", PURE, "max(", "min(", WITNESS), packages):
        assert "min(progress.high_watermark" in file.read_text()
    assert (file.read_text(), file.stat().st_mtime_ns) == before


def test_an_edit_of_text_that_is_gone_or_not_unique_is_noticed() -> None:
    gone = opposite("a rule", PURE, "no such text", "", WITNESS)
    assert complaints(gone) == [f"{PURE}: 0 times: 'no such text'"]
    (often,) = complaints(opposite("a rule", PURE, "progress.", "", WITNESS))
    assert "times: 'progress.'" in often


def test_a_table_with_gaps_is_noticed() -> None:
    table = (
        "## 1. Offsets\n\n| Rule | Code | Test |\n|---|---|---|\n"
        f"| One | `a.py` | `{WITNESS}` |\n"
        "| Two | `a.py` | `integration/test_isr.py::test_x`, "
        f"`unit/test_a.py::test_x`, `{WITNESS}` |\n"
        "| Three | `a.py` | `unit/test_a.py::test_x` |\n"
        "| Four | `a.py` | `unit/test_a.py::test_x` |\n"
    )
    rules = tuple(
        opposite(rule, PURE, "max(", "min(", WITNESS) for rule in ("One", "Two", "Three", "Five")
    )
    assert gaps(table, [Section("t.md", "1. Offsets", rules)]) == [
        "1. Offsets: Two: the first test is not one that fails",
        f"1. Offsets: Three: {WITNESS} is not named",
        "1. Offsets: Four: no opposite",
        "1. Offsets: Five: 0 rows begin so",
    ]

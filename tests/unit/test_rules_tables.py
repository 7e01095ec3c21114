"""Everything that the tables of rules name exists: files, functions, tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = sorted((ROOT / "docs").glob("rules-*.md"))
# A path in a table is complete, or below one of these.
FOLDERS = (
    "",
    "broker/barnabas_broker/",
    "controller/barnabas_controller/",
    "common/barnabas_common/",
    "client/barnabas/",
    "tools/barnabas_tools/",
    "simulator/barnabas_simulator/",
    "tests/",
)
REFERENCE = re.compile(r"`([\w./-]+\.py)(?:::(?:\w+\.)?(\w+))?`")


def references(text: str) -> list[tuple[str, str]]:
    """Return the files in a table's rows, each with its function, class or test."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [found for row in rows for found in REFERENCE.findall(row)]


def complaint(path: str, name: str) -> str | None:
    """Return the fault of a reference, or None."""
    files = [ROOT / folder / path for folder in FOLDERS if (ROOT / folder / path).is_file()]
    if not files:
        return f"{path}: no such file"
    pattern = re.compile(rf"^\s*(?:async )?(?:def|class) {name}\b", re.MULTILINE)
    if name and not any(pattern.search(file.read_text()) for file in files):
        return f"{path}: nothing is called {name}"
    return None


def test_there_are_tables() -> None:
    assert TABLES


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_every_file_function_and_test_in_a_table_exists(table: Path) -> None:
    named = references(table.read_text())
    assert len(named) > 20, "the references were not found"
    wrong = [fault for path, name in named if (fault := complaint(path, name))]
    assert not wrong, "\n".join(wrong)


def test_what_does_not_exist_is_noticed() -> None:
    row = "| a rule | `log/unified_log.py::append_as_nobody` | `unit/test_nowhere.py::test_it` |"
    assert [complaint(*found) for found in references(row)] == [
        "log/unified_log.py: nothing is called append_as_nobody",
        "unit/test_nowhere.py: no such file",
    ]

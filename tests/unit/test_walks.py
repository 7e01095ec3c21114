"""ARCHITECTURE.md: its walks name existing functions, and its tree equals the real one."""

import re

import pytest

from tests.support.references import REFERENCE, ROOT, complaint, complaints

TEXT = (ROOT / "ARCHITECTURE.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", TEXT, re.MULTILINE))
WALKS = ("The path of a batch", "A leader's death", "What runs where")
CORE_LINES = range(3_000, 5_001)


@pytest.mark.parametrize("title", WALKS)
def test_every_function_of_a_walk_exists(title: str) -> None:
    section = SECTIONS[title]
    assert len(REFERENCE.findall(section)) >= 10, "the references were not found"
    assert not complaints(section)


def test_no_other_reference_leads_nowhere() -> None:
    assert not complaints(TEXT)


def test_what_does_not_exist_is_noticed() -> None:
    assert complaint("producer/producer.py", "Producer.send") is None
    assert complaint("producer/producer.py", "Producer.become_leader") is not None
    assert complaint("producer/nowhere.py", "send") is not None


def test_the_core_walk_can_be_read_in_an_afternoon() -> None:
    files = re.findall(r"^\| \d+ \| `([\w./]+\.py)`", SECTIONS["The core walk"], re.MULTILINE)
    assert 20 <= len(files) <= 30
    missing = [file for file in files if not (ROOT / file).is_file()]
    assert not missing
    lines = sum(len((ROOT / file).read_text().splitlines()) for file in files)
    assert lines in CORE_LINES


def _drawn() -> set[str]:
    """Return every folder of the drawn trees, as a path from the root of the repository."""
    folders: set[str] = set()
    path: list[str] = []
    for indent, name in re.findall(r"^( *)([\w/]+)/(?: .*)?$", _tree(), re.MULTILINE):
        path[len(indent) // 4 :] = [name]
        folders.add("/".join(path))
    return folders


def _tree() -> str:
    blocks = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if block.startswith("controller/"))


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = _drawn()
    roots = {"controller/barnabas_controller", "broker/barnabas_broker"}
    there = {
        str(file.parent.relative_to(ROOT)) for root in roots for file in (ROOT / root).rglob("*.py")
    }
    assert drawn == there

"""Everything that documents refer to exists: pages, files, tests, labs, commands."""

import re
from functools import cache
from pathlib import Path

import pytest
from barnabas_tools.cli.main import app
from barnabas_tools.labs.catalog import LABS
from typer.main import get_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GUIDE = ROOT / "docs" / "guide"

_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_SOURCE = re.compile(
    r"`((?:proto|common|client|controller|broker|tools|simulator|spark|tests|bench|demo|docker|docs)/"
    r"[\w./-]+\.(?:py|md|proto|sh))"
)
_PYTHON = re.compile(r"`([\w./-]+\.py)(?:::[\w.]+)?`")
_LAB = re.compile(r"`barnabas lab ([a-z][a-z-]+)")
_COMMAND = re.compile(r"`barnabas ([a-z]+)")


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_links_and_files_exist(page: Path) -> None:
    text = page.read_text()
    links = [link for link in _LINK.findall(text) if not (page.parent / link).exists()]
    files = [path for path in _SOURCE.findall(text) if not (ROOT / path).exists()]
    assert not links and not files


@cache
def _python_files() -> str:
    """The path of every Python file, each preceded by a slash and followed by a newline."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return "".join(f"/{file.relative_to(ROOT)}\n" for file in files)


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_shortened_paths_exist(page: Path) -> None:
    """A path may omit its first folders, as in `election/election.py`."""
    shortened = _PYTHON.findall(page.read_text())
    assert not [path for path in shortened if f"/{path}\n" not in _python_files()]


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_labs_and_commands_exist(page: Path) -> None:
    text = page.read_text()
    command = get_command(app)
    known = command.list_commands(None)  # type: ignore[attr-defined, arg-type]
    assert set(_LAB.findall(text)) <= set(LABS)
    assert set(_COMMAND.findall(text)) <= set(known)


def test_every_lab_has_its_page_and_every_page_is_in_the_index() -> None:
    index = (GUIDE / "README.md").read_text()
    for lab in LABS.values():
        page = GUIDE / f"{lab.page}.md"
        assert page.exists(), f"{lab.name}: {page}"
        assert f"`barnabas lab {lab.name}" in page.read_text(), f"{page.name} names no {lab.name}"
    for page in GUIDE.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, page.name

"""What the documents point at exists: pages, files, tests, labs, commands."""

import re
from pathlib import Path

import pytest
from barnabas.cli.main import app
from barnabas_broker.labs.catalog import LABS
from typer.main import get_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GUIDE = ROOT / "docs" / "guide"

_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_SOURCE = re.compile(
    r"`((?:proto|client|controller|broker|simulator|spark|tests|bench|demo|docker|docs)/"
    r"[\w./-]+\.(?:py|md|proto|sh))"
)
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

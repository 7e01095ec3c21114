"""Files, functions and folders stay small, and there are no import cycles."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.shape import (
    Source,
    full_folders,
    import_cycles,
    long_files,
    long_functions,
    sources,
)

ROOT = Path(__file__).parents[2]
# Generated code (proto) and tests are excepted.
PACKAGES = ("common", "client", "controller", "broker", "tools", "simulator", "spark")
SCRIPTS = ("bench", "demo")

# Folders of like things, which a reader looks up by name and never reads as a whole.
CATALOGUES: dict[str, str] = {}


@pytest.fixture(scope="module")
def tree() -> list[Source]:
    return sources(ROOT, {name: name for name in (*PACKAGES, *SCRIPTS)})


def test_no_module_imports_itself_by_way_of_others(tree: list[Source]) -> None:
    assert import_cycles(tree) == []


def test_files_are_short(tree: list[Source]) -> None:
    assert long_files(tree) == []


def test_functions_are_short(tree: list[Source]) -> None:
    assert long_functions(tree) == []


def test_folders_are_small(tree: list[Source]) -> None:
    assert full_folders(tree, CATALOGUES) == []


def test_every_catalogue_is_needed(tree: list[Source]) -> None:
    full = full_folders(tree, {})
    assert all(any(line.startswith(f"{name}:") for line in full) for name in CATALOGUES)


# ---- the checks find what they are for


def planted(root: Path, **files: str) -> list[Source]:
    """Return the sources of a tree with the package `p` and these modules."""
    return planted_files(root, {f"p/{name}.py": text for name, text in files.items()})


def planted_files(root: Path, files: Mapping[str, str]) -> list[Source]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return sources(root, {"p": "."})


def function(lines: int) -> str:
    return "def long():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    "import_of_a",
    [
        "from p.a import A\n",
        "from p import a\n",
        "import p.a\n",
        "from . import a\n",
        "from .a import A\n",
        "if TYPE_CHECKING:\n    from p.a import A\n",
        "def f():\n    from p.a import A\n",
    ],
)
def test_a_cycle_is_found_wherever_the_import_is_written(tmp_path: Path, import_of_a: str) -> None:
    tree = planted(tmp_path, a="from p.b import B\n", b="from p.c import C\n", c=import_of_a)
    assert import_cycles(tree) == ["cycle: p.a <-> p.b <-> p.c"]


def test_a_chain_and_two_users_of_one_module_are_no_cycle(tmp_path: Path) -> None:
    tree = planted(tmp_path, a="from p.b import B\nfrom p.c import C\n", b="import p.c\n", c="")
    assert import_cycles(tree) == []


def test_a_package_and_its_module_are_a_cycle_if_each_imports_the_other(tmp_path: Path) -> None:
    tree = planted_files(tmp_path, {"p/__init__.py": "from p.a import A\n", "p/a.py": ""})
    assert import_cycles(tree) == []
    assert import_cycles(planted(tmp_path, a="from p import A\n")) == ["cycle: p <-> p.a"]


def test_a_file_of_451_lines_is_long(tmp_path: Path) -> None:
    assert long_files(planted(tmp_path, a="pass\n" * 450)) == []
    assert long_files(planted(tmp_path, a="pass\n" * 451)) == ["p/a.py: 451 lines"]


@pytest.mark.parametrize("prefix", ["", "async "])
def test_a_function_of_61_lines_is_long(tmp_path: Path, prefix: str) -> None:
    assert long_functions(planted(tmp_path, a=prefix + function(60))) == []
    assert long_functions(planted(tmp_path, a=prefix + function(61))) == ["p/a.py::long: 61 lines"]


def test_a_folder_of_17_files_is_full_unless_it_is_a_catalogue(tmp_path: Path) -> None:
    tree = planted(tmp_path, __init__="", **{f"f{number}": "" for number in range(16)})
    assert full_folders(tree, {}) == []
    tree = planted(tmp_path, f16="")
    assert full_folders(tree, {}) == ["p: 17 files"]
    assert full_folders(tree, {"p": "files of one kind"}) == []

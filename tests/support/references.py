"""References from documents to code: `file.py::name` or `file.py::Class.name`, looked up."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(
    ROOT / name
    for name in (
        "common/barnabas_common",
        "client/barnabas",
        "controller/barnabas_controller",
        "broker/barnabas_broker",
        "tools/barnabas_tools",
        "simulator/barnabas_simulator",
        "spark/pyspark_barnabas",
    )
)
REFERENCE = re.compile(r"`([\w./-]+\.py)::([\w.]+)`")


@cache
def sources() -> tuple[Path, ...]:
    return tuple(file for package in PACKAGES for file in sorted(package.rglob("*.py")))


def complaint(path: str, name: str) -> str | None:
    """Return the fault of a reference, or None. A path may omit its first folders."""
    files = [file for file in sources() if f"/{file.relative_to(ROOT)}".endswith(f"/{path}")]
    if not files:
        return f"{path}: no such file"
    if not any(name in _names(file) for file in files):
        return f"{path}: nothing is called {name}"
    return None


def complaints(text: str) -> list[str]:
    """Return the faults of all references in a text."""
    found = (complaint(*reference) for reference in REFERENCE.findall(text))
    return [fault for fault in found if fault is not None]


@cache
def _names(file: Path) -> frozenset[str]:
    return frozenset(_defined(ast.parse(file.read_text()), ""))


def _defined(node: ast.AST, owner: str) -> Iterator[str]:
    """Yield classes, functions and attributes; those of a class also as `Class.name`."""
    for child in ast.iter_child_nodes(node):
        inside = owner
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.name
            if owner:
                yield f"{owner}.{child.name}"
            inside = child.name if isinstance(child, ast.ClassDef) else owner
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            yield child.attr
        yield from _defined(child, inside)

"""The shape of a source tree: import cycles, long files, long functions, full folders.

Each check takes the parsed files of a tree and returns one line for each fault.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 16
MOST_LINES = 450
MOST_FUNCTION_LINES = 60


@dataclass(frozen=True)
class Source:
    """A parsed file: its path below the tree's root, and the name that imports it."""

    path: Path
    module: str
    lines: int
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def sources(root: Path, folders: Mapping[str, str]) -> list[Source]:
    """Parse the Python files of `folders`, which map a folder to its entry on the import path."""
    found = []
    for folder, import_path in folders.items():
        for file in sorted((root / folder).rglob("*.py")):
            text = file.read_text()
            name = file.relative_to(root / import_path).with_suffix("").parts
            module = ".".join(name[:-1] if name[-1] == "__init__" else name)
            path = file.relative_to(root)
            found.append(Source(path, module, len(text.splitlines()), ast.parse(text)))
    return found


def import_cycles(files: Sequence[Source]) -> list[str]:
    """Return the cycles of imports; those for annotations and inside functions count too."""
    modules = {file.module for file in files}
    graph = {file.module: sorted(set(_imports(file, modules)) - {file.module}) for file in files}
    return [f"cycle: {' <-> '.join(cycle)}" for cycle in _cycles(graph)]


def long_files(files: Sequence[Source]) -> list[str]:
    """Return the files with more than `MOST_LINES` lines."""
    return [f"{file.path}: {file.lines} lines" for file in files if file.lines > MOST_LINES]


def long_functions(files: Sequence[Source]) -> list[str]:
    """Return the functions with more than `MOST_FUNCTION_LINES` lines, docstrings included."""
    faults = []
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    faults.append(f"{file.path}::{node.name}: {lines} lines")
    return faults


def full_folders(files: Sequence[Source], catalogues: Mapping[str, str]) -> list[str]:
    """Return the folders with too many files; `catalogues` has the exceptions and their reasons."""
    counts: dict[str, int] = {}
    for file in files:
        if not file.is_package:
            folder = file.path.parent.as_posix()
            counts[folder] = counts.get(folder, 0) + 1
    return [
        f"{folder}: {count} files"
        for folder, count in counts.items()
        if count > MOST_FILES and folder not in catalogues
    ]


def _imports(file: Source, modules: set[str]) -> Iterator[str]:
    """Yield the modules of the tree that a file imports anywhere."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(file, node)
            for name in node.names:
                inside = f"{origin}.{name.name}"
                if inside in modules:
                    yield inside
                elif origin in modules:
                    yield origin


def _origin(file: Source, node: ast.ImportFrom) -> str:
    """Return the absolute name of the module that a `from` import names."""
    if not node.level:
        return node.module or ""
    parts = file.module.split(".")
    parts = parts[: len(parts) - node.level + file.is_package]
    return ".".join([*parts, node.module] if node.module else parts)


def _cycles(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        path.append(module)
        for imported in graph[module]:
            if imported not in index:
                visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in path:
                lowest[module] = min(lowest[module], index[imported])
        if lowest[module] == index[module]:
            start = path.index(module)
            component = path[start:]
            del path[start:]
            if len(component) > 1:
                found.append(sorted(component))

    for module in graph:
        if module not in index:
            visit(module)
    return found

"""Histories as files of lines: one file for each process of a client.

A line is one `write`, so a process that is killed leaves whole lines behind. Only the last may be
torn, if the disk is full or the machine stops: it is dropped, which is sound, because what it says
is then unknown.
"""

import heapq
import os
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas_common.history.lines import MalformedHistoryError, from_line, to_line
from barnabas_common.history.operations import Operation


class HistoryWriter:
    """Appends the operations of one process to its own new file."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = os.open(path, flags, 0o644)
        self._path = path

    def write(self, operation: Operation) -> None:
        """Append one operation; it outlives this process when `write` returns."""
        line = f"{to_line(operation)}\n".encode()
        if os.write(self._descriptor, line) != len(line):
            raise OSError(f"{self._path}: a line could not be written completely")

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_file(path: Path) -> Iterator[Operation]:
    """Yield the operations of one file. Raises `MalformedHistoryError` naming file and line."""
    latest = None
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                operation = from_line(line)
            except MalformedHistoryError as error:
                raise MalformedHistoryError(f"{path}:{number}: {error}") from None
            if latest is not None and operation.time < latest:
                raise MalformedHistoryError(f"{path}:{number}: time goes back")
            latest = operation.time
            yield operation


def history_files(folder: Path) -> list[Path]:
    """Return the files of a folder's history. Raises `MalformedHistoryError` if there are none."""
    found = sorted(folder.glob("*.jsonl"))
    if not found:
        raise MalformedHistoryError(f"{folder}: no history: there is no file *.jsonl")
    return found


def read_files(paths: Iterable[Path]) -> Iterator[Operation]:
    """Yield the operations of all files in the order of their times."""
    return heapq.merge(*map(read_file, paths), key=attrgetter("time"))

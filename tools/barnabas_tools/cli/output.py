"""How results reach the terminal: a table for humans, JSON lines for programs.

The names of JSON fields are stable: programs rely on them. Progress and summaries go to stderr, so
that stdout holds only results.
"""

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from barnabas_common.printable import printable, printable_json

from barnabas_tools.cli.settings import Settings

Row = Mapping[str, Any]

# Wide enough that no cell is ever cut: a terminal wraps the lines that are too long for it.
_UNLIMITED_WIDTH = 10_000


def print_rows(settings: Settings, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Print rows with the same fields; a table's headings are the fields' names in upper case."""
    if settings.json:
        for row in rows:
            print_json(row)
    else:
        _print_table(columns, rows)


def print_json(row: Row) -> None:
    """Print one JSON object on one line, escaped if the terminal cannot show every character."""
    escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(printable_json(json.dumps(row, ensure_ascii=escaped)) + "\n")


def json_bytes(data: bytes | None) -> object:
    """The bytes of a record in JSON: text, or `{"base64": ...}` if they are not UTF-8."""
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(data).decode()}


def print_message(settings: Settings, text: str, row: Row) -> None:
    """Print what was done: a sentence for humans, an object for programs."""
    if settings.json:
        print_json(row)
    else:
        sys.stdout.write(printable(text) + "\n")


def note(text: str) -> None:
    """Print a message that is not a result, on stderr; what the command does goes on without."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


def confirmed(question: str) -> bool:
    """Ask on stderr, because stdout holds only results; no answer is a no."""
    print(f"{printable(question)} [y/N]: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def raise_failures(results: Iterable[object]) -> None:
    """Print all errors but the last on stderr, and raise that one."""
    errors = [found for found in results if isinstance(found, BaseException)]
    for error in errors[:-1]:
        note(f"barnabas: {error}")
    if errors:
        raise errors[-1]


def counted(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _print_table(columns: Sequence[str], rows: Iterable[Row]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    for index, column in enumerate(columns):
        numeric = all(row[index].lstrip("-").isdigit() for row in cells) and bool(cells)
        heading = column.upper().replace("_", " ")
        table.add_column(heading, no_wrap=True, justify="right" if numeric else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    text = io.StringIO()  # rich would end the program if it found the pipe closed
    Console(
        file=text,
        force_terminal=sys.stdout.isatty(),
        width=_UNLIMITED_WIDTH,
        highlight=False,
        soft_wrap=True,
    ).print(table)
    sys.stdout.write(text.getvalue())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return printable(",".join(map(str, value))) or "-"
    return printable(str(value))

"""The figures of one run, as a table for humans and as JSON."""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from barnabas_tools.local.errors import ClusterError
from kafka_peer import KafkaUnavailable
from rich.console import Console
from rich.table import Table

from support.machine import busy_percent, machine

console = Console()

# Above this, other processes used the machine too, and the figures are marked.
QUIET_PERCENT = 15.0


class NotQuiet(Exception):
    """Other processes used the machine all the time: figures would mean nothing."""


@dataclass
class Row:
    """One measurement: of Barnabas, of Kafka, and the target for Barnabas."""

    what: str
    unit: str
    barnabas: float | None = None
    kafka: float | None = None
    target: str = ""


@dataclass
class Report:
    """Rows in the order in which they are first named; `notes` say how they were measured."""

    title: str
    notes: list[str] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    machine: dict[str, object] = field(default_factory=machine)
    busy_percent: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def turn(self, system: str, quiet_within: float | None = None) -> Iterator[None]:
        """Run one system; the other load of the machine is measured before and after.

        With `quiet_within` (seconds) it starts only on a quiet machine; otherwise NotQuiet.
        """
        before = busy_percent()
        deadline = time.monotonic() + (quiet_within or 0.0)
        while quiet_within is not None and before > QUIET_PERCENT:
            if time.monotonic() >= deadline:
                raise NotQuiet(f"others use {before:.0f} % of the machine: {system} not measured")
            before = busy_percent()
        console.print(f"{system}'s turn; others use {before:.0f} % of the machine")
        yield
        self.busy_percent[system] = [before, busy_percent()]

    def row(self, what: str, unit: str, target: str = "") -> None:
        """Add a row before it is measured, so that rows keep their order."""
        self.rows[what] = Row(what, unit, target=target)

    def barnabas(self, what: str, value: float) -> None:
        """Record and print a figure of Barnabas."""
        self.rows[what].barnabas = value
        self._show(what, "Barnabas", value)

    def kafka(self, what: str, value: float) -> None:
        """Record and print a figure of Kafka."""
        self.rows[what].kafka = value
        self._show(what, "Kafka", value)

    def print(self) -> None:
        table = Table(title=self.title)
        table.add_column("what")
        for header in ("unit", "Barnabas", "Kafka 3.9.1", "target"):
            table.add_column(header, justify="right")
        for row in self.rows.values():
            cells = (row.unit, _number(row.barnabas), _number(row.kafka), row.target)
            table.add_row(row.what, *cells)
        console.print(table)
        circumstances = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        for note in [*self.notes, circumstances]:
            console.print(f"[dim]{note}")
        for system, (before, after) in self.busy_percent.items():
            noisy = max(before, after) > QUIET_PERCENT
            line = (
                f"{system}: others used {before:.0f} % of the machine before, {after:.0f} % after"
            )
            console.print(f"[bold red]{line}: NOT COMPARABLE" if noisy else f"[dim]{line}")

    def write(self, path: Path) -> None:
        """Write the report as one JSON object."""
        content = asdict(self) | {"rows": [asdict(row) for row in self.rows.values()]}
        path.write_text(json.dumps(content, indent=2) + "\n")

    def _show(self, what: str, system: str, value: float) -> None:
        console.print(f"{system}: {what}: [bold]{_number(value)}[/bold] {self.rows[what].unit}")


def options_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every comparison."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument(
        "--quiet-within",
        type=float,
        metavar="SECONDS",
        help="wait this long for an otherwise idle machine, and measure on no other",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    return parser


def compare(
    report: Report,
    options: argparse.Namespace,
    barnabas: Callable[[Path], None] | None,
    kafka: Callable[[], None] | None,
) -> int:
    """Measure both systems one after the other, and print the report; returns the exit code.

    `barnabas` gets a temporary folder.
    """
    exit_code = 0
    try:
        if barnabas is not None:
            with (
                report.turn("Barnabas", options.quiet_within),
                tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder,
            ):
                barnabas(Path(folder))
        if kafka is not None:
            with report.turn("Kafka", options.quiet_within):
                kafka()
    except NotQuiet as error:
        console.print(f"[red]{error}")
        exit_code = 1
    except (ClusterError, KafkaUnavailable, RuntimeError) as error:
        console.print(f"[red]{error}")
        return 1
    report.print()
    if options.json:
        report.write(options.json)
    return exit_code


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that `percent` of the values do not exceed."""
    rank = max(1, -(-len(values) * percent // 100))
    return sorted(values)[int(rank) - 1]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1_000 else f"{value:,.4g}"

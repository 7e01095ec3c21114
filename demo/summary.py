"""The table at the end: what was sent, what was acknowledged, what was read back."""

from dataclasses import dataclass

from deliveries import Deliveries, ReadBack
from monitor import Election
from rich.table import Table


@dataclass
class Run:
    """The measurements of the run, in seconds."""

    cluster_start: float = 0.0
    victim: int = -1
    producing: float = 0.0
    batches_retried: int = 0
    in_sync_again: float = 0.0
    reading: float = 0.0
    election: Election | None = None


def summary(
    rows: int, partitions: int, deliveries: Deliveries, read_back: ReadBack, run: Run
) -> Table:
    """Return the table of names and values."""
    table = Table(title="What happened", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    gaps = [f"{p}: {_gap(deliveries, p)}" for p in range(partitions)]
    for name, value in {
        "rows sent": f"{rows:,}, in {run.producing:.1f} s with the election in it",
        "acknowledged by all in-sync replicas": f"{deliveries.acked:,}",
        "given up by the producer": _should_be_zero(len(deliveries.failures)),
        "batches retried": f"{run.batches_retried:,}",
        "records read back": f"{read_back.records:,}, in {run.reading:.1f} s",
        "acknowledged and lost": _should_be_zero(read_back.lost),
        "acknowledged, at another offset": _should_be_zero(read_back.misplaced),
        "altered or never sent": _should_be_zero(read_back.altered),
        "out of order": _should_be_zero(read_back.reordered),
        "duplicated by a retry": f"{_should_be_zero(read_back.duplicated)}"
        " (the leaders recognize a retry by its producer id and sequence)",
        "longest gap between acks, by partition": "   ".join(gaps),
        "killed, and the election after it": f"broker {run.victim}; {run.election or 'not seen'}",
        "back in sync": f"{run.in_sync_again:.1f} s after its restart",
    }.items():
        table.add_row(name, value)
    return table


def _gap(deliveries: Deliveries, partition: int) -> str:
    """Format a partition's longest gap. The keys of 16 carriers may leave a partition empty."""
    gap = deliveries.longest_gap.get(partition)
    return "no rows" if gap is None else f"{gap:.2f} s"


def _should_be_zero(count: int) -> str:
    return "[green]0" if count == 0 else f"[bold red]{count:,}"

"""`barnabas simulate`, and `python -m barnabas_simulator.campaign`.

The simulator imports the whole broker, so it is loaded only when a command runs.
"""

import os
import signal
import time
from multiprocessing import active_children
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from barnabas_simulator.campaign.options import Mode

app = typer.Typer(
    add_completion=False,
    help="Whole clusters under random faults, on virtual time.",
    no_args_is_help=True,
)

PROGRESS_RUNS = 25
INTERRUPTED = 130

ModeOption = Annotated[
    Mode | None, typer.Option(help="Default: every third run tests liveness, the others safety.")
]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End the process at once, and those that it has started.

    An exception could be raised anywhere: in a callback of the garbage collector, where Python
    drops it, or in a task, which then cleans up for minutes of virtual time.
    """
    for child in active_children():
        child.kill()
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


@app.callback()
def prepare(context: typer.Context) -> None:
    """Ctrl-C ends a run immediately."""
    before = signal.signal(signal.SIGINT, _interrupt)
    context.call_on_close(lambda: signal.signal(signal.SIGINT, before))


@app.command("run")
def run_campaign(
    count: Annotated[int, typer.Argument(help="The number of runs.", min=1)],
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    mode: ModeOption = None,
    jobs: Annotated[int, typer.Option(help="The number of processes.", min=1)] = 2,
    out: Annotated[Path, typer.Option(help="Where failed runs are saved.")] = Path("simulations"),
) -> None:
    """Run many seeds; each failed run is repeated, shrunk and saved."""
    from barnabas_simulator.campaign.judge.coverage import ENOUGH_RUNS, missing, table
    from barnabas_simulator.campaign.many import Campaign, investigate, run_many

    campaign, began = Campaign(), time.monotonic()
    typer.echo(f"0 of {count} runs", err=True)
    for outcome in run_many(range(seed, seed + count), mode, jobs):
        campaign.add(outcome)
        if outcome.violation is not None:
            typer.echo(f"seed {outcome.seed}: {outcome.violation}")
        done = len(campaign.outcomes)
        if done == 1 or done % PROGRESS_RUNS == 0:
            typer.echo(f"{done} of {count} runs, {len(campaign.failed)} violations", err=True)
    seconds = time.monotonic() - began
    for line in table(campaign.counts):
        typer.echo(line)
    acked = sum(outcome.acked for outcome in campaign.outcomes)
    typer.echo(
        f"{count} runs, {acked} acknowledged records, {len(campaign.failed)} violations,"
        f" {seconds:.0f} s, {count / seconds * 3600:.0f} runs an hour"
    )
    for outcome in campaign.failed:
        typer.echo(f"seed {outcome.seed}: {outcome.kind}")
        investigate(outcome, mode, out, typer.echo)
    never = missing(campaign.counts, count) if count >= ENOUGH_RUNS else []
    for name in never:
        typer.echo(f"never happened: {name}", err=True)
    if campaign.failed or never:
        raise typer.Exit(1)


@app.command()
def replay(
    file: Annotated[
        Path, typer.Argument(help="A file that `run` has saved.", exists=True, dir_okay=False)
    ],
) -> None:
    """Run a saved schedule again and print its timeline; exit code 1 if it still fails."""
    from barnabas_simulator.campaign.replay_file import Replay
    from barnabas_simulator.campaign.schedule import run_schedule

    try:
        saved = Replay.load(file)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="file") from None
    outcome = run_schedule(saved.options, saved.faults, tell=True)
    for line in outcome.story:
        typer.echo(line)
    typer.echo(outcome.violation or "no violation")
    if outcome.violation is not None:
        raise typer.Exit(1)


@app.command()
def trace(seed: int, count: Annotated[int, typer.Argument()] = 1, mode: ModeOption = None) -> None:
    """Print the digest of each run, which is the same in every process."""
    from barnabas_simulator.campaign.many import run_seed

    for number in range(seed, seed + count):
        typer.echo(f"{number} {run_seed(number, mode).trace}")


def main() -> None:
    app(prog_name="barnabas simulate")

"""`barnabas simulate`, and `python -m barnabas_simulator.campaign`.

The simulator imports the whole broker, so it is loaded only when a command runs.
"""

import os
import signal
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from barnabas_simulator.campaign.options import Mode

app = typer.Typer(
    add_completion=False,
    help="Whole clusters under random faults, on virtual time.",
    no_args_is_help=True,
)

PROGRESS_RUNS = 25
INTERRUPTED = 130
REFUSED = 2

ModeOption = Annotated[
    Mode | None,
    typer.Option(help="Default: every tenth run has steps; of the others every third is liveness."),
]


def _end_on_interrupt(tell: Callable[[], str]) -> None:
    """From now on Ctrl-C ends the process, and those that it has started, with the line of `tell`.

    It ends at once: an exception could be raised anywhere, in a callback of the garbage collector,
    where Python drops it, or in a task, which then cleans up for minutes of virtual time.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for child in active_children():
            child.kill()
        os.write(2, f"{tell()}\n".encode())
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, interrupt)


@app.callback()
def prepare(context: typer.Context) -> None:
    """Ctrl-C ends a run immediately."""
    before = signal.getsignal(signal.SIGINT)
    _end_on_interrupt(lambda: "interrupted")
    context.call_on_close(lambda: signal.signal(signal.SIGINT, before))


@app.command("run")
def run_campaign(
    count: Annotated[int, typer.Argument(help="The number of runs.", min=1)],
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    mode: ModeOption = None,
    jobs: Annotated[int, typer.Option(help="The number of processes.", min=1)] = 2,
    out: Annotated[Path, typer.Option(help="Where failed runs are saved.")] = Path("simulations"),
) -> None:
    """Run many seeds; each failed run is saved, repeated and shrunk."""
    from barnabas_simulator.campaign.judge.coverage import ENOUGH_RUNS, missing, table
    from barnabas_simulator.campaign.many import Campaign, investigate, keep, run_many
    from barnabas_simulator.campaign.saved_runs import SavedRuns

    campaign, saved, began = Campaign(), SavedRuns(out, typer.echo), time.monotonic()

    def so_far() -> str:
        places = f": {', '.join(saved.places)}" if saved.places else ""
        return f"{len(campaign.outcomes)} of {count} runs, {campaign}{places}"

    _end_on_interrupt(lambda: f"interrupted after {so_far()}")
    typer.echo(f"0 of {count} runs", err=True)
    found = []
    try:
        for outcome in run_many(range(seed, seed + count), mode, jobs):
            campaign.add(outcome)
            if outcome.violation is not None:
                typer.echo(f"seed {outcome.seed}: {outcome.violation}")
                found.append(keep(outcome, mode, saved))
            done = len(campaign.outcomes)
            if done == 1 or done % PROGRESS_RUNS == 0:
                typer.echo(f"{done} of {count} runs, {len(found)} violations", err=True)
    except EOFError:
        typer.echo(f"a process of the campaign has died after {so_far()}", err=True)
        raise typer.Exit(1) from None
    seconds = time.monotonic() - began
    for line in table(campaign.counts):
        typer.echo(line)
    speed = f"{seconds:.0f} s, {count / seconds * 3600:.0f} runs an hour"
    typer.echo(f"{count} runs, {campaign}, {speed}")
    for one in found:
        typer.echo(f"seed {one.outcome.seed}: {one.outcome.kind}")
        investigate(one, saved)
    never = missing(campaign.counts, count) if count >= ENOUGH_RUNS else []
    for name in never:
        typer.echo(f"never happened: {name}", err=True)
    if found or never:
        raise typer.Exit(1)


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A file that `run` has saved.")],
    whole: Annotated[bool, typer.Option(help="Print every line of the story.")] = False,
) -> None:
    """Run a saved schedule again and print its story; exit code 1 if it still fails."""
    from barnabas_simulator.campaign.replay_file import Replay
    from barnabas_simulator.campaign.schedule import run_schedule

    try:
        saved = Replay.load(file)
    except ValueError as error:
        _refuse(str(error))
    except OSError as error:
        _refuse(f"{file} cannot be read: {error.strerror}")
    outcome = run_schedule(saved.options, saved.faults, tell=True)
    is_good = outcome.violation is None
    for line in outcome.story if is_good or whole else outcome.short_story:
        typer.echo(line)
    if is_good:
        typer.echo("no violation")
        return
    if whole:
        typer.echo(outcome.violation)
    raise typer.Exit(1)


def _refuse(why: str) -> NoReturn:
    typer.echo(why, err=True)
    raise typer.Exit(REFUSED)


@app.command()
def trace(seed: int, count: Annotated[int, typer.Argument()] = 1, mode: ModeOption = None) -> None:
    """Print the digest of each run, which is the same in every process."""
    from barnabas_simulator.campaign.many import run_seed

    for number in range(seed, seed + count):
        typer.echo(f"{number} {run_seed(number, mode).trace}")


def main() -> None:
    app(prog_name="barnabas simulate")

"""`barnabas lab`: a question about a mechanism, then a scenario on a real cluster."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from barnabas_common.printable import printable

from barnabas_tools.cli.output import note, print_json, print_rows
from barnabas_tools.cli.settings import (
    CommandFailed,
    Settings,
    UsageFailed,
    parse_assignments,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas_tools.labs.framework.lab import Lab, Prediction
    from barnabas_tools.labs.framework.outcome import Outcome

app = typer.Typer(add_completion=False, help="Watch one mechanism at work on a real cluster.")


@app.command()
def lab(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="The lab; default: list all.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a prediction.")] = False,
    switch: Annotated[
        bool,
        typer.Option("--switch", help="Restore the fault that the lab is about; its checks fail."),
    ] = False,
    configs: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A broker config. Repeatable."),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, help="How long to wait for each condition."),
    ] = 30,
) -> None:
    """Play a scenario on a new cluster: first a question, then the events, then the explanation.

    Exit code 1 if a check failed.
    """
    from barnabas_tools.labs.catalog import LABS

    settings = settings_of(context)
    if name is None:
        rows = [
            {"lab": lab.name, "shows": lab.title, "switch": bool(lab.switch), "page": lab.page}
            for lab in LABS.values()
        ]
        print_rows(settings, ("lab", "shows", "switch", "page"), rows)
        return
    if name not in LABS:
        raise UsageFailed(f"there is no lab {name!r}; the labs are {', '.join(LABS)}")
    given = parse_assignments(configs or [])
    ask = not (yes or switch or settings.json)
    _play(settings, LABS[name], given, ask=ask, switch=switch, patience=patience)


def _play(
    settings: Settings,
    chosen: "Lab",
    given: Mapping[str, str],
    *,
    ask: bool,
    switch: bool,
    patience: float,
) -> None:
    from barnabas_tools.labs.framework.runner import run_lab
    from barnabas_tools.local.errors import ClusterError

    if switch and not chosen.switch:
        raise UsageFailed(f"no setting brings the fault back that {chosen.name!r} is about")
    note(chosen.title)
    prediction = _predict(chosen.prediction) if ask else None
    config = {**(chosen.switch if switch else {}), **given}
    for key, value in config.items():
        note(f"with {key}={value}")
    try:
        outcome = run_lab(chosen, note, config, patience)
    except ClusterError as error:
        raise CommandFailed(str(error)) from None
    if settings.json:
        print_json(_row(outcome))
    else:
        _tell(chosen, outcome, prediction, config if switch else {})
    if not outcome.passed:
        raise typer.Exit(1)


def _predict(prediction: "Prediction") -> int:
    """Ask until the answer is one of the choices."""
    for line in ("", *prediction.question.splitlines()):
        note(line)
    for number, choice in enumerate(prediction.choices, 1):
        note(f"  {number}. {choice}")
    numbers = [str(number) for number in range(1, len(prediction.choices) + 1)]
    while True:
        print(
            f"Your prediction ({numbers[0]} to {numbers[-1]}): ",
            end="",
            file=sys.stderr,
            flush=True,
        )
        line = sys.stdin.readline()
        if not line:
            raise UsageFailed("there is no prediction on standard input; --yes plays without one")
        if line.strip() in numbers:
            note("")
            return int(line) - 1


def _row(outcome: "Outcome") -> dict[str, Any]:
    return {
        "lab": outcome.lab,
        "passed": outcome.passed,
        "seconds": round(outcome.seconds, 1),
        "broken": outcome.broken,
        "checks": [
            {"claim": check.claim, "holds": check.holds, "seen": check.seen}
            for check in outcome.checks
        ],
    }


def _tell(
    chosen: "Lab", outcome: "Outcome", predicted: int | None, fault: Mapping[str, str]
) -> None:
    """Print the outcome. `fault`: the settings of the lab's switch, if it was played with it."""
    asked = chosen.prediction
    print()
    if outcome.broken:
        print(f"The scenario broke off: {printable(outcome.broken)}")
    if not outcome.passed:
        failed = [check.claim for check in outcome.checks if not check.holds]
        settings = " ".join(f"{key}={value}" for key, value in fault.items())
        played = f", with the fault it is about ({settings})" if fault else ""
        print(f"FAILED{played}" + (": " + "; ".join(failed) if failed else ""))
        if fault:
            print(asked.because)
    else:
        right = asked.choices[asked.answer]
        if predicted is not None:
            print("You were right." if predicted == asked.answer else f"It was: {right}.")
        print(asked.because)
    print(f"{outcome.seconds:.1f} s. Read on: docs/guide/{chosen.page}.md")

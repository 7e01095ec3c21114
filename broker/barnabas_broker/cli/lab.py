"""`barnabas lab`: a mechanism shown on a real cluster, after a question."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from barnabas.cli.output import note, print_json, print_rows
from barnabas.cli.settings import (
    CommandFailed,
    Settings,
    UsageFailed,
    parse_assignments,
    settings_of,
)

from barnabas_broker.cli.termination import terminated_like_interrupted

if TYPE_CHECKING:
    from barnabas_broker.labs.lab import Lab, Outcome, Prediction

app = typer.Typer(add_completion=False, help="See one mechanism at work on a real cluster.")


@app.command()
def lab(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Which lab; default: list them all.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a prediction.")] = False,
    switch: Annotated[
        bool,
        typer.Option(
            "--switch", help="Bring back the fault the lab is about: its checks fail. No question."
        ),
    ] = False,
    configs: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A broker config. Repeatable."),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1, help="How long to wait for each thing that must come."
        ),
    ] = 30,
) -> None:
    """Play a scenario on a cluster of its own: first a question, then what happens, then why.

    Exit code 1 if something that had to hold did not.
    """
    from barnabas_broker.labs.catalog import LABS

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
    from barnabas_broker.labs.runner import run_lab
    from barnabas_broker.local.errors import ClusterError

    if switch and not chosen.switch:
        raise UsageFailed(f"no setting brings the fault back that {chosen.name!r} is about")
    note(chosen.title)
    prediction = _predict(chosen.prediction) if ask else None
    config = {**(chosen.switch if switch else {}), **given}
    for key, value in config.items():
        note(f"with {key}={value}")
    try:
        with terminated_like_interrupted():
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
    note(f"\n{prediction.question}")
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
    """`fault`: the settings that were to make it fail, if it was played with its switch."""
    asked = chosen.prediction
    print()
    if outcome.broken:
        print(f"The scenario broke off: {outcome.broken}")
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

"""`barnabas explain TOPIC-PARTITION`: why a partition is in its state."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas_tools.cli.output import print_json
from barnabas_tools.cli.settings import UsageFailed, run_admin, settings_of

if TYPE_CHECKING:
    from barnabas.explain import Explanation

app = typer.Typer(add_completion=False, help="Explain the state of a partition.")

_HEADINGS = {
    "leader": "Why this leader",
    "isr": "Why this ISR",
    "high-watermark": "Why this high watermark",
    "truncation": "What was cut off",
    "refused": "What is refused",
    "broker": "What happened to the brokers",
    "also": "What else happened",
    "doubt": "What is not known",
}


@app.command()
def explain(
    context: typer.Context,
    partition: Annotated[
        str, typer.Argument(metavar="TOPIC-PARTITION", help="For example flights-0.")
    ],
) -> None:
    """Explain why a partition has this leader, this ISR and this high watermark.

    The explanation comes from the brokers' state and events. It names brokers that do not answer
    and events that are no longer stored.
    """
    settings = settings_of(context)
    topic, number = _parse(partition)
    explanation = run_admin(settings, lambda admin: admin.explain(topic, number))
    if settings.json:
        print_json(asdict(explanation))
    else:
        print(explanation_text(explanation))


def _parse(text: str) -> tuple[str, int]:
    topic, dash, number = text.rpartition("-")
    if not (topic and dash and number.isascii() and number.isdigit()):
        raise UsageFailed(f"TOPIC-PARTITION wants a name like flights-0, not {text!r}")
    return topic, int(number)


def explanation_text(explanation: "Explanation") -> str:
    """Format the facts in one line, then the sentences under their headings, each with its time."""
    from barnabas_tools.cli.observe.event_lines import clock

    lines = [_facts(explanation)]
    for about, heading in _HEADINGS.items():
        sentences = [sentence for sentence in explanation.sentences if sentence.about == about]
        if sentences:
            lines += ["", heading]
        for sentence in sentences:
            time = clock(sentence.time_ms) if sentence.time_ms else "now"
            lines.append(f"  {time:12}  {sentence.text}")
    return "\n".join(lines)


def _facts(explanation: "Explanation") -> str:
    def listed(brokers: list[int]) -> str:
        return ",".join(map(str, brokers)) or "none"

    leader = "no leader" if explanation.leader < 0 else f"leader {explanation.leader}"
    return (
        f"{explanation.topic}-{explanation.partition}: {leader}, epoch {explanation.leader_epoch},"
        f" ISR {listed(explanation.in_sync_replicas)} of replicas {listed(explanation.replicas)},"
        f" high watermark {_offset(explanation.high_watermark)}"
        f" of {_offset(explanation.log_end_offset)}"
    )


def _offset(offset: int) -> str:
    return "unknown" if offset < 0 else str(offset)

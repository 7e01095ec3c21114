"""`barnabas explain TOPIC-PARTITION`, or `--group GROUP`: why it is in its state."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from barnabas_common.printable import printable

from barnabas_tools.cli.output import print_json
from barnabas_tools.cli.settings import (
    Settings,
    UsageFailed,
    parse_partition,
    run_admin,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas.explain import Explanation, Sentence
    from barnabas.group.explaining import GroupSentence

    Said = Sentence | GroupSentence

app = typer.Typer(add_completion=False, help="Explain the state of a partition.")

_HEADINGS = {
    "leader": "Why this leader",
    "isr": "Why this ISR",
    "high-watermark": "Why this high watermark",
    "last-stable-offset": "Why this last stable offset",
    "truncation": "What was cut off",
    "refused": "What is refused",
    "broker": "What happened to the brokers",
    "also": "What else happened",
    "doubt": "What is not known",
}
_GROUP_HEADINGS = {
    "rebalance": "Why it rebalanced",
    "owner": "Who reads what",
    "lag": "Why it lags",
    "doubt": "What is not known",
}
_TRANSACTION_HEADINGS = {
    "transaction": "What it is doing",
    "fenced": "Who was fenced",
    "unfinished": "What its coordinator still has to do",
    "doubt": "What is not known",
}


@app.command()
def explain(
    context: typer.Context,
    partition: Annotated[
        str | None, typer.Argument(metavar="TOPIC-PARTITION", help="For example flights-0.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="A consumer group instead of a partition.")
    ] = None,
    transactional_id: Annotated[
        str | None, typer.Option(metavar="ID", help="A transactional id instead of a partition.")
    ] = None,
) -> None:
    """Explain why a partition has this leader, this ISR, this high watermark and last stable
    offset.

    With --group: why the group rebalanced, which member reads what, and why it lags. With
    --transactional-id: why a producer was fenced, and what its coordinator still has to do.

    The explanation comes from the brokers' state and events. It names brokers that do not answer
    and events that are no longer stored.
    """
    settings = settings_of(context)
    if sum(named is not None for named in (partition, group, transactional_id)) > 1:
        raise UsageFailed("name a partition, a --group or a --transactional-id: one of them")
    if group is not None:
        of_group = run_admin(settings, lambda admin: admin.explain_group(group))
        _print_sentences(settings, {"group": group}, _GROUP_HEADINGS, of_group)
        return
    if transactional_id is not None:
        said = run_admin(settings, lambda admin: admin.explain_transaction(transactional_id))
        subject = {"transactional_id": transactional_id}
        _print_sentences(settings, subject, _TRANSACTION_HEADINGS, said)
        return
    if partition is None:
        raise UsageFailed("name a partition, a --group or a --transactional-id")
    topic, number = parse_partition(partition)
    explanation = run_admin(settings, lambda admin: admin.explain(topic, number))
    if settings.json:
        print_json(asdict(explanation))
    else:
        print(explanation_text(explanation))


def _print_sentences(
    settings: Settings,
    subject: Mapping[str, str],
    headings: Mapping[str, str],
    said: "Sequence[Said]",
) -> None:
    if settings.json:
        print_json({**subject, "sentences": [asdict(found) for found in said]})
    else:
        print("\n".join(sentence_lines(headings, said)[1:]))


def explanation_text(explanation: "Explanation") -> str:
    """Format the facts in one line, then the sentences under their headings, each with its time."""
    return "\n".join([_facts(explanation), *sentence_lines(_HEADINGS, explanation.sentences)])


def sentence_lines(headings: Mapping[str, str], said: "Sequence[Said]") -> list[str]:
    """The sentences under their headings, each with its time."""
    from barnabas_tools.cli.observe.event_lines import clock

    lines: list[str] = []
    for about, heading in headings.items():
        sentences = [sentence for sentence in said if sentence.about == about]
        if sentences:
            lines += ["", heading]
        for sentence in sentences:
            time = clock(sentence.time_ms) if sentence.time_ms else "now"
            lines.append(f"  {time:12}  {printable(sentence.text)}")
    return lines


def _facts(explanation: "Explanation") -> str:
    def listed(brokers: list[int]) -> str:
        return ",".join(map(str, brokers)) or "none"

    leader = "no leader" if explanation.leader < 0 else f"leader {explanation.leader}"
    return (
        f"{explanation.topic}-{explanation.partition}: {leader}, epoch {explanation.leader_epoch},"
        f" ISR {listed(explanation.in_sync_replicas)} of replicas {listed(explanation.replicas)},"
        f" high watermark {_offset(explanation.high_watermark)}"
        f" of {_offset(explanation.log_end_offset)}{_stable(explanation)}"
    )


def _stable(explanation: "Explanation") -> str:
    """The last stable offset, if read_committed readers are held back."""
    if explanation.last_stable_offset >= explanation.high_watermark:
        return ""
    return f", last stable offset {_offset(explanation.last_stable_offset)}"


def _offset(offset: int) -> str:
    return "unknown" if offset < 0 else str(offset)

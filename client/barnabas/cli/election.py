"""`barnabas election`: have leaders elected."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.cli.output import note, print_rows
from barnabas.cli.settings import Settings, UsageFailed, run_async, settings_of

if TYPE_CHECKING:
    from barnabas.topic_partition import TopicPartition

app = typer.Typer(no_args_is_help=True, help="Have leaders elected.")

_COLUMNS = ("topic", "partition", "result", "reason")
# Nothing to do is not a failure.
_HARMLESS = ("ELECTED", "ELECTION_NOT_NEEDED")


class ElectionType(StrEnum):
    """See `barnabas.messages.elections`."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@app.callback()
def election() -> None:
    """Have leaders elected."""


@app.command()
def run(
    context: typer.Context,
    election_type: Annotated[
        ElectionType,
        typer.Option(
            "--type",
            help="preferred: the first replica. unclean: any that lives, data may be lost.",
        ),
    ],
    topic: Annotated[str | None, typer.Option("--topic", "-t", help="One topic.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="One partition of the topic.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All partitions of all topics that need it.")
    ] = False,
) -> None:
    """Elect leaders; one line for each partition, exit code 1 if one could not be had."""
    if every == (topic is not None):
        raise UsageFailed("name either --topic or --all")
    if partition is not None and topic is None:
        raise UsageFailed("--partition is for --topic")
    settings = settings_of(context)
    rows = run_async(_elect(settings, election_type, topic, partition))
    print_rows(settings, _COLUMNS, rows)
    if not rows:
        note("no partition needs an election")
    if any(row["result"] not in _HARMLESS for row in rows):
        raise typer.Exit(1)


async def _elect(
    settings: Settings, election_type: ElectionType, topic: str | None, partition: int | None
) -> list[dict[str, Any]]:
    from barnabas import Admin, TopicPartition

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        wanted: list[TopicPartition] | None = None
        if topic is not None and partition is not None:
            wanted = [TopicPartition(topic, partition)]
        elif topic is not None:
            described = await admin.describe_topic(topic)
            wanted = [TopicPartition(topic, p.partition) for p in described.partitions]
        results = await admin.elect_leaders(election_type.value, wanted)
    return [_row(found, error) for found, error in sorted(results.items())]


def _row(partition: "TopicPartition", error: Any) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "result": "ELECTED" if error is None else error.code.name,
        "reason": None if error is None else error.message,
    }

"""`barnabas election`: request leader elections."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas_tools.cli.output import note, print_rows
from barnabas_tools.cli.settings import UsageFailed, run_admin, settings_of

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas_common.topic_partition import TopicPartition

app = typer.Typer(no_args_is_help=True, help="Request leader elections.")

_COLUMNS = ("topic", "partition", "result", "reason")
# An election that is not needed is not a failure.
_HARMLESS = ("ELECTED", "ELECTION_NOT_NEEDED")


class ElectionType(StrEnum):
    """The kinds of election that can be requested (KIP-460)."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@app.callback()
def election() -> None:
    """Request leader elections."""


@app.command()
def run(
    context: typer.Context,
    election_type: Annotated[
        ElectionType,
        typer.Option(
            "--type",
            help="preferred: the first replica. unclean: any online replica, data may be lost.",
        ),
    ],
    topic: Annotated[str | None, typer.Option("--topic", "-t", help="One topic.")] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, max=2**31 - 1, help="One partition of the topic."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All partitions of all topics that need it.")
    ] = False,
) -> None:
    """Elect leaders; prints one line per partition, exit code 1 if an election failed."""
    if every == (topic is not None):
        raise UsageFailed("name either --topic or --all")
    if partition is not None and topic is None:
        raise UsageFailed("--partition is for --topic")
    settings = settings_of(context)
    rows = run_admin(settings, lambda admin: _elect(admin, election_type, topic, partition))
    print_rows(settings, _COLUMNS, rows)
    if not rows:
        note("no partition needs an election")
    if any(row["result"] not in _HARMLESS for row in rows):
        raise typer.Exit(1)


async def _elect(
    admin: "Admin", election_type: ElectionType, topic: str | None, partition: int | None
) -> list[dict[str, Any]]:
    from barnabas import TopicPartition

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

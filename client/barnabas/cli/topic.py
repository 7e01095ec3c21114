"""`barnabas topic`: create, list, describe, alter and delete topics."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.cli.config import SetOption, alter_configs, changes_of, report
from barnabas.cli.output import counted, print_message, print_rows
from barnabas.cli.settings import (
    CommandFailed,
    Settings,
    UsageFailed,
    parse_assignments,
    run_async,
    settings_of,
)
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas.messages.metadata import PartitionMetadata, TopicMetadata

app = typer.Typer(no_args_is_help=True, help="Create, list, describe, alter and delete topics.")

DEFAULT_REPLICATION_FACTOR = 3
SAFE_MIN_INSYNC_REPLICAS = 2

_LIST_COLUMNS = ("topic", "partitions", "replication_factor", "under_replicated", "leaderless")
_DESCRIBE_COLUMNS = (
    "topic",
    "partition",
    "leader",
    "leader_epoch",
    "replicas",
    "in_sync_replicas",
    "offline_replicas",
)


@app.callback()
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    partitions: Annotated[int, typer.Option("--partitions", "-p", help="How many.")] = 1,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", help="Default: 3, or the number of brokers."),
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("--set", "--config", metavar="NAME=VALUE", help="A topic config. Repeatable."),
    ] = None,
) -> None:
    """Create a topic.

    With three replicas or more it gets min.insync.replicas=2 unless told otherwise.
    """
    if partitions < 1:
        raise UsageFailed(f"--partitions must be at least 1, not {partitions}")
    if replication_factor is not None and replication_factor < 1:
        raise UsageFailed(f"--replication-factor must be at least 1, not {replication_factor}")
    settings = settings_of(context)
    given = parse_assignments(configs or [])
    row = run_async(_create(settings, name, partitions, replication_factor, given))
    text = (
        f"created topic {name}: {counted(partitions, 'partition')},"
        f" replication factor {row['replication_factor']}"
    )
    if row["configs"]:
        text += ", " + ", ".join(f"{key}={value}" for key, value in row["configs"].items())
    print_message(settings, text, row)


@app.command("list")
def list_topics(context: typer.Context) -> None:
    """All topics, and whether their partitions are well."""
    settings = settings_of(context)
    print_rows(settings, _LIST_COLUMNS, run_async(_list(settings)))


@app.command()
def describe(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="One topic; default: all.")] = None,
) -> None:
    """The leader, replicas and in-sync replicas of each partition."""
    settings = settings_of(context)
    print_rows(settings, _DESCRIBE_COLUMNS, run_async(_describe(settings, name)))


@app.command()
def alter(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", help="Grow to so many partitions.")
    ] = None,
    assignments: SetOption = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            "--delete", "--delete-config", metavar="NAME", help="Take one away. Repeatable."
        ),
    ] = None,
) -> None:
    """Change the settings of a topic, which count within moments, or add partitions to it.

    Records stay where they are: those of a key may go to another partition from now on.
    """
    from barnabas.admin import ConfigResource

    changes = changes_of(assignments, delete_config)
    if not changes and partitions is None:
        raise UsageFailed("say what to change: --partitions, --set or --delete")
    settings, resource = settings_of(context), ConfigResource.topic(name)
    if partitions is not None:
        run_async(_grow(settings, name, partitions))
        row = {"topic": name, "partitions": partitions}
        print_message(settings, f"topic {name} has {counted(partitions, 'partition')}", row)
    if changes:
        run_async(alter_configs(settings, resource, changes))
        report(settings, resource, changes)


@app.command()
def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete topics with all their records."""
    settings = settings_of(context)
    if not yes and not typer.confirm(f"Delete {', '.join(names)} with all records?", err=True):
        raise CommandFailed("nothing deleted")
    run_async(_delete(settings, names))
    for name in names:
        print_message(settings, f"deleted topic {name}", {"topic": name, "deleted": True})


def with_defaults(
    brokers: int, replication_factor: int | None, configs: dict[str, str]
) -> tuple[int, dict[str, str]]:
    """The replication factor and the configs of a new topic, from what was said about them."""
    factor = replication_factor or min(DEFAULT_REPLICATION_FACTOR, max(1, brokers))
    if factor >= DEFAULT_REPLICATION_FACTOR and "min.insync.replicas" not in configs:
        configs = {**configs, "min.insync.replicas": str(SAFE_MIN_INSYNC_REPLICAS)}
    return factor, configs


async def _create(
    settings: Settings,
    name: str,
    partitions: int,
    replication_factor: int | None,
    configs: dict[str, str],
) -> dict[str, Any]:
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        brokers = len((await admin.describe_cluster()).brokers)
        factor, configs = with_defaults(brokers, replication_factor, configs)
        await admin.create_topic(
            name, partitions=partitions, replication_factor=factor, configs=configs
        )
    return {
        "topic": name,
        "partitions": partitions,
        "replication_factor": factor,
        "configs": configs,
    }


async def _grow(settings: Settings, name: str, partitions: int) -> None:
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        await admin.create_partitions(name, partitions)


async def _list(settings: Settings) -> list[dict[str, Any]]:
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        topics = await admin.describe_topics()
        adding = await _adding(admin) if any(map(_is_thin, _partitions(topics))) else {}
    return [topic_row(topic, adding) for topic in topics]


def _partitions(topics: "Iterable[TopicMetadata]") -> "Iterator[PartitionMetadata]":
    return (partition for topic in topics for partition in topic.partitions)


def _is_thin(partition: "PartitionMetadata") -> bool:
    return len(partition.in_sync_replicas) < len(partition.replicas)


async def _adding(admin: "Admin") -> dict[TopicPartition, int]:
    """How many replicas reassignments are adding to a partition; nothing is known without a
    controller, and the list should not wait for one."""
    from barnabas.errors import BarnabasError

    try:
        async with asyncio.timeout(2):
            ongoing = await admin.list_partition_reassignments()
    except (BarnabasError, TimeoutError):
        return {}
    return {partition: len(found.adding_replicas) for partition, found in ongoing.items()}


async def _describe(settings: Settings, name: str | None) -> list[dict[str, Any]]:
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        topics = await admin.describe_topics([name] if name is not None else None)
    return [
        {
            "topic": topic.topic,
            "partition": partition.partition,
            "leader": partition.leader_id if partition.leader_id >= 0 else None,
            "leader_epoch": partition.leader_epoch,
            "replicas": list(partition.replicas),
            "in_sync_replicas": list(partition.in_sync_replicas),
            "offline_replicas": list(partition.offline_replicas),
        }
        for topic in topics
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition)
    ]


async def _delete(settings: Settings, names: list[str]) -> None:
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        await admin.delete_topics(names)


def topic_row(
    topic: "TopicMetadata", adding: Mapping[TopicPartition, int] | None = None
) -> dict[str, Any]:
    """One line of the list. A partition lacks replicas if fewer are in sync than it has without
    those that a reassignment is `adding`."""
    partitions = topic.partitions

    def lacks_replicas(partition: "PartitionMetadata") -> bool:
        coming = (adding or {}).get(TopicPartition(topic.topic, partition.partition), 0)
        return len(partition.in_sync_replicas) < len(partition.replicas) - coming

    return {
        "topic": topic.topic,
        "partitions": len(partitions),
        "replication_factor": max((len(p.replicas) for p in partitions), default=0),
        "under_replicated": sum(map(lacks_replicas, partitions)),
        "leaderless": sum(p.leader_id < 0 for p in partitions),
    }

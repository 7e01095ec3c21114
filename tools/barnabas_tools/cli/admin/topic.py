"""`barnabas topic`: create, list, describe, alter and delete topics."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.cli.admin.config import DeleteOption, SetOption, changes_of, report
from barnabas_tools.cli.admin.placement import PLAIN, check_alone, explicit, plain
from barnabas_tools.cli.output import (
    confirmed,
    counted,
    note,
    print_message,
    print_rows,
    raise_failures,
)
from barnabas_tools.cli.settings import (
    CommandFailed,
    Settings,
    UsageFailed,
    parse_assignments,
    run_admin,
    run_for_each,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas.admin import DeletedTopic
    from barnabas_common.messages.metadata import PartitionMetadata, TopicMetadata

app = typer.Typer(no_args_is_help=True, help="Create, list, describe, alter and delete topics.")

DEFAULT_REPLICATION_FACTOR = 3
SAFE_MIN_INSYNC_REPLICAS = 2
_PATIENCE_SECONDS = 2

ExcludeInternal = Annotated[
    bool, typer.Option("--exclude-internal", help="Leave out the topics that brokers write.")
]

_LIST_COLUMNS = ("topic", "partitions", "replication_factor", "under_replicated", "leaderless")
_DESCRIBE_COLUMNS = (
    "topic",
    "partition",
    "leader",
    "leader_epoch",
    "replicas",
    "in_sync_replicas",
    "offline_replicas",
    "dirty_percent",
)


@app.callback()
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", help="Default: the brokers' num.partitions."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", help="Default: 3, or the number of brokers."),
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("--set", "--config", metavar="NAME=VALUE", help="A topic config. Repeatable."),
    ] = None,
    assignment: Annotated[
        str | None,
        typer.Option(
            metavar="plain|LIST",
            help="plain: replica j of partition i on broker (i + j) mod n; or a list such as"
            " 0:1,2,3;1:2,3,1. Default: from a random broker on.",
        ),
    ] = None,
) -> None:
    """Create a topic.

    With three or more replicas it gets min.insync.replicas=2 unless --set says otherwise.
    """
    if partitions is not None and partitions < 1:
        raise UsageFailed(f"--partitions must be at least 1, not {partitions}")
    if replication_factor is not None and replication_factor < 1:
        raise UsageFailed(f"--replication-factor must be at least 1, not {replication_factor}")
    settings = settings_of(context)
    given = parse_assignments(configs or [], "--set/--config")
    placed = None if assignment in (None, PLAIN) else explicit(str(assignment))
    if placed is not None:
        check_alone(placed, partitions, replication_factor)
        partitions, replication_factor = len(placed), len(placed[min(placed)])

    async def create_on(admin: "Admin") -> dict[str, Any]:
        brokers = [broker.broker_id for broker in (await admin.describe_cluster()).brokers]
        known = set(brokers) if replication_factor else {*brokers, *await _brokers_in_use(admin)}
        factor, wanted = with_defaults(len(known), replication_factor, given)
        replicas = placed
        if assignment == PLAIN:
            count = partitions or await _default_partitions(admin, brokers[0])
            replicas = plain(brokers, count, factor)
        return await _create(admin, name, partitions or -1, factor, wanted, replicas)

    row = run_admin(settings, create_on)
    text = (
        f"created topic {name}: {counted(row['partitions'], 'partition')},"
        f" replication factor {row['replication_factor']}"
    )
    if row["configs"]:
        text += ", " + ", ".join(f"{key}={value}" for key, value in row["configs"].items())
    print_message(settings, text, row)


@app.command("list")
def list_topics(context: typer.Context, exclude_internal: ExcludeInternal = False) -> None:
    """List all topics, with partitions that lack replicas or a leader."""
    settings = settings_of(context)
    rows = run_admin(settings, lambda admin: _list(admin, exclude_internal))
    print_rows(settings, _LIST_COLUMNS, rows)


@app.command()
def describe(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="One topic; default: all.")] = None,
    exclude_internal: ExcludeInternal = False,
) -> None:
    """Show the leader, replicas and in-sync replicas of each partition.

    dirty_percent is how much of the leader's log may be compacted and was not yet; empty without
    compaction, or if the leader does not answer.
    """
    settings = settings_of(context)
    rows = run_admin(settings, lambda admin: _describe(admin, name, exclude_internal))
    print_rows(settings, _DESCRIBE_COLUMNS, rows)


@app.command()
def alter(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", help="The new number of partitions.")
    ] = None,
    assignments: SetOption = None,
    delete_config: DeleteOption = None,
) -> None:
    """Change the settings of a topic, or add partitions to it.

    Existing records stay in their partitions; new records of a key may go to another partition.
    """
    from barnabas.admin import ConfigResource

    changes = changes_of(assignments, delete_config)
    if not changes and partitions is None:
        raise UsageFailed("say what to change: --partitions, --set or --delete")
    settings, resource = settings_of(context), ConfigResource.topic(name)
    if changes and partitions is not None:  # all or nothing
        run_admin(
            settings,
            lambda admin: admin.incremental_alter_configs(resource, changes, validate_only=True),
        )
    if partitions is not None:
        run_admin(settings, lambda admin: admin.create_partitions(name, partitions))
        row = {"topic": name, "partitions": partitions}
        print_message(settings, f"topic {name} has {counted(partitions, 'partition')}", row)
    if changes:
        run_admin(settings, lambda admin: admin.incremental_alter_configs(resource, changes))
        report(settings, resource, changes)


@app.command()
def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete topics with all their records.

    While a broker with a replica does not run, the deletion waits for it, and the name is not free.
    """
    settings = settings_of(context)
    if not yes and not confirmed(f"Delete {', '.join(names)} with all records?"):
        raise CommandFailed("nothing deleted")
    results = run_for_each(settings, names, lambda admin, name: admin.delete_topics([name]))
    for deleted in results.values():
        if not isinstance(deleted, BaseException):
            _tell_of_deletion(settings, deleted[0])
    raise_failures(results.values())


def _tell_of_deletion(settings: Settings, found: "DeletedTopic") -> None:
    row = {"topic": found.topic, "deleted": True, "waits_for": list(found.waits_for)}
    print_message(settings, f"deleted topic {found.topic}", row)
    if found.waits_for:
        brokers = ", ".join(map(str, found.waits_for))
        note(
            f"the deletion of {found.topic} ends when each of these brokers is back: {brokers};"
            " until then the topic cannot be created again"
        )


def with_defaults(
    brokers: int, replication_factor: int | None, configs: dict[str, str]
) -> tuple[int, dict[str, str]]:
    """Return the replication factor and the configs of a new topic.

    The default factor is 3, or the number of `brokers` if that is less. From a factor of 3 on,
    min.insync.replicas is 2 unless `configs` has it.
    """
    factor = replication_factor or min(DEFAULT_REPLICATION_FACTOR, max(1, brokers))
    if factor >= DEFAULT_REPLICATION_FACTOR and "min.insync.replicas" not in configs:
        configs = {**configs, "min.insync.replicas": str(SAFE_MIN_INSYNC_REPLICAS)}
    return factor, configs


async def _create(
    admin: "Admin",
    name: str,
    partitions: int,
    factor: int,
    configs: dict[str, str],
    replicas: Mapping[int, list[int]] | None,
) -> dict[str, Any]:
    if replicas is None:
        created = await admin.create_topic(name, partitions, factor, configs=configs)
    else:
        created = await admin.create_topic(name, configs=configs, assignments=replicas)
    return {
        "topic": name,
        "partitions": created.partitions,
        "replication_factor": created.replication_factor,
        "configs": configs,
    }


async def _brokers_in_use(admin: "Admin") -> set[int]:
    """The brokers with replicas, also those that are down: they count for the default, so that no
    topic is less safe because it was created meanwhile."""
    partitions = _partitions(await admin.describe_topics())
    return {broker_id for partition in partitions for broker_id in partition.replicas}


async def _default_partitions(admin: "Admin", broker_id: int) -> int:
    configs = await admin.describe_broker_configs(broker_id)
    return int(next(config.value for config in configs if config.name == "num.partitions"))


def shown(topics: "Iterable[TopicMetadata]", exclude_internal: bool) -> "list[TopicMetadata]":
    """Without the topics of brokers, if they are not wanted."""
    return [topic for topic in topics if not (exclude_internal and topic.is_internal)]


async def _list(admin: "Admin", exclude_internal: bool) -> list[dict[str, Any]]:
    topics = shown(await admin.describe_topics(), exclude_internal)
    adding = await _adding(admin) if any(map(_is_under_replicated, _partitions(topics))) else {}
    return [topic_row(topic, adding) for topic in topics]


def _partitions(topics: "Iterable[TopicMetadata]") -> "Iterator[PartitionMetadata]":
    return (partition for topic in topics for partition in topic.partitions)


def _is_under_replicated(partition: "PartitionMetadata") -> bool:
    return len(partition.in_sync_replicas) < len(partition.replicas)


async def _adding(admin: "Admin") -> dict[TopicPartition, int]:
    """Return how many replicas reassignments are adding to each partition; empty without a
    controller, because the list must not wait for one."""
    from barnabas_common.errors import BarnabasError

    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            ongoing = await admin.list_partition_reassignments()
    except (BarnabasError, TimeoutError):
        return {}
    return {partition: len(found.adding_replicas) for partition, found in ongoing.items()}


async def _describe(
    admin: "Admin", name: str | None, exclude_internal: bool
) -> list[dict[str, Any]]:
    found = await admin.describe_topics([name] if name is not None else None)
    topics = shown(found, exclude_internal)
    dirty = await _dirty_percents(admin, [topic.topic for topic in topics])
    return [
        {
            "topic": topic.topic,
            "partition": partition.partition,
            "leader": partition.leader_id if partition.leader_id >= 0 else None,
            "leader_epoch": partition.leader_epoch,
            "replicas": list(partition.replicas),
            "in_sync_replicas": list(partition.in_sync_replicas),
            "offline_replicas": list(partition.offline_replicas),
            "dirty_percent": dirty.get((topic.topic, partition.partition, partition.leader_id)),
        }
        for topic in topics
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition)
    ]


async def _dirty_percents(admin: "Admin", topics: list[str]) -> dict[tuple[str, int, int], int]:
    """How dirty each replica of a compacted log is: topic, partition, broker. Without the brokers
    that do not answer soon, because the description must not wait for them."""
    from barnabas_common.errors import BarnabasError

    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            answers = await admin.describe_replicas(topics) if topics else []
    except (BarnabasError, TimeoutError):
        return {}
    return {
        (each.topic, each.partition, answer.broker_id): each.dirty_percent
        for answer in answers
        for each in answer.replicas
        if each.dirty_percent >= 0
    }


def topic_row(
    topic: "TopicMetadata", adding: Mapping[TopicPartition, int] | None = None
) -> dict[str, Any]:
    """Return one row of the list.

    A partition is under-replicated if it has fewer in-sync replicas than replicas, not counting
    those that a reassignment is `adding`.
    """
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

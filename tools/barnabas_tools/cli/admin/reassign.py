"""`barnabas reassign`: move partitions to other brokers while records flow."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.cli.output import counted, note, print_message, print_rows
from barnabas_tools.cli.settings import (
    CommandFailed,
    UsageFailed,
    check_seconds,
    is_int32,
    parse_assignments,
    parse_partition,
    run_admin,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas import Admin

app = typer.Typer(no_args_is_help=True, help="Move partitions to other brokers.")

_EXECUTE_COLUMNS = ("topic", "partition", "replicas", "target")
_STATUS_COLUMNS = (
    "topic",
    "partition",
    "state",
    "replicas",
    "adding_replicas",
    "removing_replicas",
    "in_sync_replicas",
)
POLL_SECONDS = 0.5
COMPLETE, MOVING, DIFFERS = "complete", "in progress", "not as planned"

FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="A plan in JSON; - for standard input."),
]
PartitionsOption = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="TOPIC-N", help="One partition. Repeatable."),
]
WaitOption = Annotated[bool, typer.Option("--wait", help="Wait until the moves are complete.")]
PreserveOption = Annotated[
    bool, typer.Option("--preserve-throttle", help="Keep throttles after the last move.")
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="The longest time to wait.")
]


@app.callback()
def reassign() -> None:
    """Move partitions to other brokers while records flow."""


@app.command()
def plan(
    context: typer.Context,
    brokers: Annotated[
        str | None,
        typer.Option("--brokers", metavar="ID,...", help="Brokers to use; default: all."),
    ] = None,
    topics: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="A topic; default: all. Repeatable.")
    ] = None,
) -> None:
    """Propose an assignment of replicas as JSON for `execute`, without changing anything."""
    from barnabas.admin.reassignment_plan import format_plan, moved_replicas

    settings = settings_of(context)
    ids = None if brokers is None else _ids(brokers)
    current, proposed = run_admin(settings, lambda admin: _plan(admin, ids, topics))
    print(format_plan(proposed, indent=None if settings.json else 2))
    moved = moved_replicas(current, proposed)
    note(f"{counted(len(proposed), 'partition')}, {counted(moved, 'replica')} to copy")


@app.command()
def execute(
    context: typer.Context,
    file: FileArgument = None,
    moves: Annotated[
        list[str] | None,
        typer.Option("--move", metavar="TOPIC-N=ID,...", help="Instead of a file. Repeatable."),
    ] = None,
    throttle: Annotated[
        int | None,
        typer.Option("--throttle", metavar="BYTES", help="The limit per broker, in bytes/s."),
    ] = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = 3600.0,
) -> None:
    """Start to move partitions; the first broker of each list becomes the preferred leader."""
    if throttle is not None and throttle < 1:
        raise UsageFailed(f"--throttle must be at least 1, not {throttle}")
    check_seconds("--timeout", timeout)
    targets = _targets(file, moves)
    settings = settings_of(context)
    rows = run_admin(settings, lambda admin: _execute(admin, targets, throttle))
    print_rows(settings, _EXECUTE_COLUMNS, rows)
    if wait:
        lift = throttle is not None
        run_admin(settings, lambda admin: _wait(admin, list(targets), timeout, lift))


@app.command()
def status(
    context: typer.Context,
    file: FileArgument = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = 3600.0,
    preserve_throttle: PreserveOption = False,
) -> None:
    """Show the moves in progress, or the state of the partitions of a plan.

    If no move is in progress, the throttles of `execute --throttle` are removed.
    """
    check_seconds("--timeout", timeout)
    settings = settings_of(context)
    targets = None if file is None else _targets(file, None)
    if wait:
        waited_for = None if targets is None else list(targets)
        run_admin(settings, lambda admin: _wait(admin, waited_for, timeout))
    rows, lifted = run_admin(settings, lambda admin: _status(admin, targets, not preserve_throttle))
    print_rows(settings, _STATUS_COLUMNS, rows)
    if not rows:
        note("nothing is under way")
    _note_lifted(lifted)


@app.command()
def cancel(
    context: typer.Context,
    file: FileArgument = None,
    partitions: PartitionsOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All moves in progress.")] = False,
    preserve_throttle: PreserveOption = False,
) -> None:
    """Restore the original replicas; the replicas that were being added are deleted.

    If no move is in progress then, the throttles of `execute --throttle` are removed.
    """
    if (file is not None) + bool(partitions) + everything != 1:
        raise UsageFailed("say what to cancel: a plan, --partition or --all")
    named = None
    if not everything:
        named = list(_targets(file, None)) if file else list(map(parse_partition, partitions or ()))
    settings = settings_of(context)
    cancelled, lifted = run_admin(
        settings, lambda admin: _cancel(admin, named, not preserve_throttle)
    )
    for partition in cancelled:
        row = {"topic": partition.topic, "partition": partition.partition, "cancelled": True}
        print_message(settings, f"cancelled {partition}", row)
    if not cancelled:
        note("nothing is under way")
    _note_lifted(lifted)


def _note_lifted(topics: list[str]) -> None:
    if topics:
        note(f"throttle lifted: {', '.join(topics)}")


# Arguments


def _ids(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(map(is_int32, words)):
        raise UsageFailed(f"broker ids are numbers with commas between them, not {text!r}")
    return [int(word) for word in words]


def _targets(file: Path | None, moves: list[str] | None) -> dict[TopicPartition, list[int]]:
    from barnabas.admin.reassignment_plan import parse_plan

    if (file is None) == (not moves):
        raise UsageFailed("give either a plan or --move")
    if file is None:
        return _moves(moves or [])
    try:
        return parse_plan(
            typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text()
        )
    except OSError as error:
        raise CommandFailed(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"cannot read {file}: {error}") from None


def _moves(moves: list[str]) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {}
    for move in moves:
        ((name, ids),) = parse_assignments([move], "--move", "TOPIC-N=ID,...").items()
        partition = parse_partition(name)
        if partition in found:
            raise UsageFailed(f"--move names {partition} twice")
        found[partition] = _ids(ids)
    return found


# Requests


async def _plan(
    admin: "Admin", brokers: list[int] | None, topics: list[str] | None
) -> tuple[dict[TopicPartition, list[int]], dict[TopicPartition, list[int]]]:
    from barnabas.admin.reassignment_plan import plan_reassignment

    live = {broker.broker_id: broker.rack for broker in (await admin.describe_cluster()).brokers}
    unknown = [broker for broker in brokers or () if broker not in live]
    if unknown:
        raise CommandFailed(f"brokers {unknown} are not live; live are {sorted(live)}")
    current = await _replicas(admin, topics)
    racks = {broker: rack for broker, rack in live.items() if rack}
    return current, plan_reassignment(current, live if brokers is None else brokers, racks)


async def _replicas(
    admin: "Admin", topics: Sequence[str] | None
) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(topic.topic, found.partition): list(found.replicas)
        for topic in await admin.describe_topics(topics)
        for found in topic.partitions
    }


async def _execute(
    admin: "Admin", targets: Mapping[TopicPartition, list[int]], throttle: int | None
) -> list[dict[str, Any]]:
    from barnabas.admin.reassignment_throttle import reassign_throttled

    before = await _replicas(admin, list(dict.fromkeys(p.topic for p in targets)))
    if throttle is None:
        await admin.alter_partition_reassignments(targets)
    else:
        await reassign_throttled(admin, targets, throttle)
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": before.get(partition, []),
            "target": target,
        }
        for partition, target in sorted(targets.items())
    ]


async def _wait(
    admin: "Admin",
    partitions: list[TopicPartition] | None,
    timeout: float,
    lift: bool = False,
) -> None:
    try:
        async with asyncio.timeout(timeout):
            while await admin.list_partition_reassignments(partitions):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise CommandFailed(f"REQUEST_TIMED_OUT: not done after {timeout:g} s") from None
    if lift:
        await _lift_if_done(admin)


async def _lift_if_done(admin: "Admin") -> list[str]:
    from barnabas.admin.reassignment_throttle import lift_if_done

    return await lift_if_done(admin)


async def _status(
    admin: "Admin", targets: Mapping[TopicPartition, list[int]] | None, lift: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    ongoing = await admin.list_partition_reassignments()
    wanted = sorted(ongoing if targets is None else targets)
    topics = await admin.describe_topics(dict.fromkeys(p.topic for p in wanted))
    now = {TopicPartition(t.topic, p.partition): p for t in topics for p in t.partitions}
    rows = []
    for partition in wanted:
        moving, found = ongoing.get(partition), now.get(partition)
        replicas = list(found.replicas) if found is not None else []
        arrived = targets is not None and replicas == targets[partition]
        rows.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "state": MOVING if moving else COMPLETE if arrived else DIFFERS,
                "replicas": list(moving.replicas) if moving else replicas,
                "adding_replicas": list(moving.adding_replicas) if moving else [],
                "removing_replicas": list(moving.removing_replicas) if moving else [],
                "in_sync_replicas": list(found.in_sync_replicas) if found is not None else [],
            }
        )
    lifted = await _lift_if_done(admin) if lift and not ongoing else []
    return rows, lifted


async def _cancel(
    admin: "Admin", partitions: list[TopicPartition] | None, lift: bool
) -> tuple[list[TopicPartition], list[str]]:
    if partitions is None:
        partitions = list(await admin.list_partition_reassignments())
    if partitions:
        await admin.alter_partition_reassignments(dict.fromkeys(partitions))
    return partitions, await _lift_if_done(admin) if lift else []

"""`barnabas group`: consumer groups, what they have read, and where they read on."""

import csv
import sys
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas_tools.cli.admin.reset_offsets import (
    Log,
    Target,
    inside,
    is_selected,
    selected,
    target_of,
    wanted_offset,
)
from barnabas_tools.cli.output import counted, note, print_message, print_rows, raise_failures
from barnabas_tools.cli.settings import (
    CommandFailed,
    UsageFailed,
    checked_states,
    run_admin,
    run_for_each,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas.admin import GroupDescription
    from barnabas_common.topic_partition import TopicPartition

app = typer.Typer(no_args_is_help=True, help="Consumer groups and their offsets.")

_OFFSETS = ("group", "topic", "partition", "current_offset", "log_end_offset", "lag",
            "member_id", "client_id", "host")  # fmt: skip
_MEMBERS = ("group", "member_id", "client_id", "host", "instance_id", "partitions", "assignment")
_STATE = ("group", "state", "assignor", "coordinator", "members", "lag")
_RESET = ("group", "topic", "partition", "old_offset", "new_offset")
_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
# States in which no member could commit over a reset.
_INACTIVE = ("Empty", "Dead")


class Storage(StrEnum):
    """Where a group keeps its offsets."""

    KAFKA = "kafka"
    ZOOKEEPER = "zookeeper"


GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The group.")]
StorageOption = Annotated[
    Storage, typer.Option(help="zookeeper: groups with offsets there, as in Kafka 0.8.")
]


@app.callback()
def group() -> None:
    """Consumer groups and their offsets."""


@app.command(name="list")
def list_groups(
    context: typer.Context,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only groups in this state.")
    ] = None,
    storage: StorageOption = Storage.KAFKA,
) -> None:
    """List the groups of the cluster."""
    settings = settings_of(context)
    states = checked_states(state, _STATES)
    found = run_admin(settings, lambda admin: admin.list_groups(states, storage.value))
    rows = [{"group": g.group_id, "state": g.group_state, "type": g.protocol_type} for g in found]
    print_rows(settings, ("group", "state", "type"), rows)


@app.command()
def describe(
    context: typer.Context,
    name: GroupName,
    members: Annotated[
        bool, typer.Option("--members", help="One line per member, not per partition.")
    ] = False,
    state: Annotated[bool, typer.Option("--state", help="One line for the group.")] = False,
    storage: StorageOption = Storage.KAFKA,
) -> None:
    """Show how far a group has read, its lag, and which member reads which partition."""
    if members and state:
        raise UsageFailed("--members and --state contradict each other")
    settings = settings_of(context)
    found, rows = run_admin(settings, lambda admin: _describe(admin, name, storage.value))
    if found.state == "Dead" and not rows:
        raise CommandFailed(f"there is no group {name!r}")
    if members:
        print_rows(settings, _MEMBERS, [_member_row(name, member) for member in found.members])
    elif state:
        print_rows(settings, _STATE, [_state_row(found, rows)])
    else:
        print_rows(settings, _OFFSETS, rows)
        if not found.members:
            note(f"group {name} has no members")
    for words in _waits(found):
        note(f"group {name} {words}")


def _waits(found: "GroupDescription") -> "Iterable[str]":
    """Whom its rebalance waits for, in words without a subject."""
    from barnabas.group.awaiting import in_words

    return in_words(found.awaiting)


@app.command()
def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="GROUP...", help="The groups.")],
    storage: StorageOption = Storage.KAFKA,
) -> None:
    """Delete groups without members, with their offsets."""
    settings = settings_of(context)
    results = run_for_each(
        settings, names, lambda admin, name: admin.delete_groups([name], storage.value)
    )
    for name, found in results.items():
        if not isinstance(found, BaseException):
            print_message(settings, f"deleted group {name}", {"group": name, "deleted": True})
    raise_failures(results.values())


@app.command(name="reset-offsets")
def reset_offsets(
    context: typer.Context,
    name: GroupName,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC[:0,2]", help="A topic, or some partitions."),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Everything the group has committed.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option(min=0, help="This offset.")] = None,
    to_datetime: Annotated[
        str | None, typer.Option(metavar="TIME", help="The first record at or after it (UTC).")
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="PT1H30M", help="As long ago as this.")
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option(help="So many offsets on, or back if < 0.")
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first offset.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="What is committed: for --export.")
    ] = False,
    from_file: Annotated[Path | None, typer.Option(help="Lines of topic,partition,offset.")] = None,
    execute: Annotated[
        bool, typer.Option("--execute/--dry-run", help="Do it; otherwise it is only shown.")
    ] = False,
    export: Annotated[bool, typer.Option("--export", help="Print lines for --from-file.")] = False,
    storage: StorageOption = Storage.KAFKA,
) -> None:
    """Set where a group without members reads on. Nothing is changed without --execute."""
    target = target_of(
        offset=to_offset, at=to_datetime, duration=by_duration, shift=shift_by,
        earliest=to_earliest, latest=to_latest, current=to_current, file=from_file,
        now_ms=round(time.time() * 1000),
    )  # fmt: skip
    if not name:
        raise UsageFailed("GROUP must not be empty")
    if target.file is None and all_topics == bool(topic):
        raise UsageFailed("name either --topic or --all-topics")
    settings = settings_of(context)
    if export and settings.json:
        raise UsageFailed("--export prints lines of text and cannot be used with --output json")
    rows = run_admin(
        settings,
        lambda admin: _reset(admin, name, topic or (), target, execute, storage.value),
    )
    if export:
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            (row["topic"], row["partition"], row["new_offset"]) for row in rows
        )
    else:
        print_rows(settings, _RESET, rows)
    done = "reset" if execute else "would be reset; --execute does it"
    note(f"{counted(len(rows), 'partition')} {done}")


async def _describe(
    admin: "Admin", name: str, storage: str
) -> "tuple[GroupDescription, list[dict[str, Any]]]":
    """The group, and a row for each partition that is committed or assigned."""
    from barnabas_tools.cli.log_ends import log_ends

    found = (await admin.describe_groups([name]))[name]
    committed = await admin.list_group_offsets(name, storage)
    readers = {tp: member for member in found.members for tp in member.assignment}
    partitions = sorted({*committed, *readers})
    ends = await log_ends(admin, partitions)
    rows = []
    for tp in partitions:
        at = committed[tp].offset if tp in committed else None
        end = ends.get(tp)
        reader = readers.get(tp)
        rows.append(
            {
                "group": name,
                "topic": tp.topic,
                "partition": tp.partition,
                "current_offset": at,
                "log_end_offset": end,
                "lag": None if at is None or end is None else max(end - at, 0),
                "member_id": reader and reader.member_id,
                "client_id": reader and reader.client_id,
                "host": reader and reader.host,
            }
        )
    return found, rows + [_idle_row(name, m) for m in found.members if not m.assignment]


def _idle_row(name: str, member: Any) -> dict[str, Any]:
    """A member without partitions: there are more members than partitions, or no such topic."""
    return dict.fromkeys(_OFFSETS) | {
        "group": name,
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
    }


async def _offsets(
    admin: "Admin", partitions: "Iterable[TopicPartition]", timestamp: int
) -> "dict[TopicPartition, int]":
    found = await admin.list_offsets(dict.fromkeys(partitions, timestamp))
    return {tp: answer.offset for tp, answer in found.items()}


def _member_row(name: str, member: Any) -> dict[str, Any]:
    return {
        "group": name,
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "instance_id": member.group_instance_id or None,
        "partitions": len(member.assignment),
        "assignment": [str(tp) for tp in member.assignment],
    }


def _state_row(found: "GroupDescription", rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "group": found.group_id,
        "state": found.state,
        "assignor": found.assignor or None,
        "coordinator": found.coordinator,
        "members": len(found.members),
        "lag": sum(row["lag"] or 0 for row in rows),
    }


async def _reset(
    admin: "Admin", name: str, topics: Iterable[str], target: Target, execute: bool, storage: str
) -> list[dict[str, Any]]:
    from barnabas_common.messages.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

    state = (await admin.describe_groups([name]))[name].state
    if state not in _INACTIVE:
        raise CommandFailed(f"group {name!r} is {state}: stop its members before a reset")
    committed = await admin.list_group_offsets(name, storage)
    if state == "Dead" and not committed and target.file is None and not topics:
        raise CommandFailed(f"there is no group {name!r}")
    partitions = await _partitions(admin, topics, target, committed)
    earliest = await _offsets(admin, partitions, EARLIEST_TIMESTAMP)
    latest = await _offsets(admin, partitions, LATEST_TIMESTAMP)
    at_time: dict[TopicPartition, int] = {}
    if target.timestamp is not None:
        at_time = await _offsets(admin, partitions, target.timestamp)
    offsets = {}
    for tp in partitions:
        old = committed[tp].offset if tp in committed else None
        found = at_time.get(tp, -1)
        log = Log(earliest[tp], latest[tp], old, found if found >= 0 else None)
        wanted = wanted_offset(tp, target, log)
        offsets[tp] = inside(wanted, log)
        if offsets[tp] != wanted:
            note(
                f"{tp}: {wanted} is outside the log, from {log.earliest} to {log.latest}:"
                f" {offsets[tp]}"
            )
    if execute and offsets:
        await admin.alter_group_offsets(name, offsets, storage)
    return [
        {
            "group": name,
            "topic": tp.topic,
            "partition": tp.partition,
            "old_offset": committed[tp].offset if tp in committed else None,
            "new_offset": offset,
        }
        for tp, offset in offsets.items()
    ]


async def _partitions(
    admin: "Admin",
    topics: Iterable[str],
    target: Target,
    committed: "Mapping[TopicPartition, Any]",
) -> "list[TopicPartition]":
    from barnabas_common.topic_partition import TopicPartition

    from barnabas_tools.cli.log_ends import log_ends

    chosen = selected(topics)
    if target.file is not None:
        return sorted(tp for tp in target.file if is_selected(tp, chosen))
    if not chosen:
        existing = await log_ends(admin, committed)
        for tp in sorted(committed.keys() - existing.keys()):
            note(f"{tp} does not exist any more, so it is left out")
        return sorted(existing)
    found = []
    for topic, numbers in chosen.items():
        if numbers is None:
            numbers = [p.partition for p in (await admin.describe_topic(topic)).partitions]
        found += [TopicPartition(topic, number) for number in numbers]
    return sorted(found)

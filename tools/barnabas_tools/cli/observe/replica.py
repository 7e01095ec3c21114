"""`barnabas replica`: what each replica reports about itself."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas_tools.cli.output import note, print_rows
from barnabas_tools.cli.settings import run_admin, settings_of

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas.admin import BrokerReplicas
    from barnabas_common.messages.replicas import ReplicaDescription

app = typer.Typer(no_args_is_help=True, help="Show what each replica reports about itself.")

STATUS_COLUMNS = (
    "topic",
    "partition",
    "broker",
    "role",
    "leader_epoch",
    "log_start_offset",
    "log_end_offset",
    "high_watermark",
    "last_stable_offset",
    "lag",
    "in_sync",
    "in_sync_replicas",
    "dirty_percent",
)


@app.callback()
def replica() -> None:
    """Show what each replica reports about itself."""


@app.command()
def status(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(help="One topic; default: all.")] = None,
) -> None:
    """Show offsets, epoch and ISR of every replica, each from its own broker.

    A follower's high watermark is one fetch behind the leader's. Its lag is the distance to the
    leader's log end offset. Both are normal while records are produced.
    """
    settings = settings_of(context)
    answers = run_admin(settings, lambda admin: _ask_all(admin, topic))
    print_rows(settings, STATUS_COLUMNS, replica_rows(answers))
    silent = [answer for answer in answers if answer.error is not None]
    for answer in silent:
        note(f"barnabas: broker {answer.broker_id} does not answer: {answer.error}")
    if silent:
        raise typer.Exit(1)


def replica_rows(answers: "Iterable[BrokerReplicas]") -> list[dict[str, Any]]:
    """Return one row per replica, by topic, partition and broker; no lag without a leader."""
    replicas = sorted(
        ((answer.broker_id, each) for answer in answers for each in answer.replicas),
        key=lambda pair: (pair[1].topic, pair[1].partition, pair[0]),
    )
    leaders = newest_leaders(each for _, each in replicas)
    return [
        _row(broker, each, leaders.get((each.topic, each.partition))) for broker, each in replicas
    ]


def newest_leaders(
    replicas: "Iterable[ReplicaDescription]",
) -> "Mapping[tuple[str, int], ReplicaDescription]":
    """Return the leader of each partition; of two replicas that claim to lead, the later epoch's.

    The other has not been notified of its successor yet.
    """
    leaders: dict[tuple[str, int], ReplicaDescription] = {}
    for each in replicas:
        key = (each.topic, each.partition)
        known = leaders.get(key)
        if each.is_leader and (known is None or each.leader_epoch > known.leader_epoch):
            leaders[key] = each
    return leaders


def _row(
    broker: int, replica: "ReplicaDescription", leader: "ReplicaDescription | None"
) -> dict[str, Any]:
    in_sync_replicas = leader.in_sync_replicas if leader else None
    return {
        "topic": replica.topic,
        "partition": replica.partition,
        "broker": broker,
        "role": "leader" if replica.is_leader else "follower",
        "leader_epoch": replica.leader_epoch,
        "log_start_offset": replica.log_start_offset,
        "log_end_offset": replica.log_end_offset,
        "high_watermark": replica.high_watermark,
        "last_stable_offset": replica.last_stable_offset,
        "lag": max(0, leader.log_end_offset - replica.log_end_offset) if leader else None,
        "in_sync": broker in in_sync_replicas if in_sync_replicas is not None else None,
        "in_sync_replicas": in_sync_replicas,
        "dirty_percent": replica.dirty_percent if replica.dirty_percent >= 0 else None,
    }


async def _ask_all(admin: "Admin", topic: str | None) -> "list[BrokerReplicas]":
    if topic is None:
        return await admin.describe_replicas()
    await admin.describe_topic(topic)  # an error if the topic does not exist
    return await admin.describe_replicas([topic])

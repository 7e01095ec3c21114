"""`barnabas transaction`: transactional ids, their transactions, and those that hang.

The commands, options and columns are those of `kafka-transactions.sh` (KIP-664).
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas_tools.cli.output import counted, note, print_message, print_rows
from barnabas_tools.cli.settings import (
    CommandFailed,
    UsageFailed,
    checked_states,
    run_admin,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas.admin import OpenTransaction, TransactionDescription
    from barnabas_common.messages.transactions import ActiveProducer
    from barnabas_common.topic_partition import TopicPartition

app = typer.Typer(no_args_is_help=True, help="Transactions, and those that hang.")

_LISTED = ("transactional_id", "coordinator", "producer_id", "transaction_state")
_DESCRIBED = ("coordinator_id", "transactional_id", "producer_id", "producer_epoch",
              "transaction_state", "transaction_timeout_ms", "current_transaction_start_time_ms",
              "transaction_duration_ms", "topic_partitions")  # fmt: skip
_PRODUCERS = ("producer_id", "producer_epoch", "latest_coordinator_epoch", "last_sequence",
              "last_timestamp", "current_transaction_start_offset")  # fmt: skip
_HANGING = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch",
            "start_offset", "last_timestamp", "duration_min")  # fmt: skip
_MINUTE_MS = 60_000
_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip

TopicOption = Annotated[str | None, typer.Option(help="The topic.")]
PartitionOption = Annotated[int | None, typer.Option(min=0, help="The partition's number.")]


@app.callback()
def transaction() -> None:
    """Transactions, and those that hang."""


@app.command(name="list")
def list_transactions(
    context: typer.Context,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only those in this state.")
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option("--producer-id", min=0, max=2**63 - 1, help="Only those of this producer."),
    ] = None,
    duration_filter: Annotated[
        int,
        typer.Option(
            metavar="MS", min=-1, max=2**63 - 1, help="Only those that are open for longer."
        ),
    ] = -1,
) -> None:
    """List the transactional ids of the cluster."""
    settings = settings_of(context)
    states = checked_states(state, _STATES)
    found = run_admin(
        settings,
        lambda admin: admin.list_transactions(
            states, producer_id or (), min_duration_ms=duration_filter
        ),
    )
    rows = [
        dict(zip(_LISTED, (t.transactional_id, t.coordinator, t.producer_id, t.state), strict=True))
        for t in found
    ]
    print_rows(settings, _LISTED, rows)


@app.command()
def describe(
    context: typer.Context,
    transactional_id: Annotated[
        str, typer.Option(metavar="ID", help="The transactional id of a producer.")
    ],
) -> None:
    """Show state, producer, timeout and partitions of a transactional id."""
    settings = settings_of(context)
    found = run_admin(settings, lambda admin: admin.describe_transactions([transactional_id]))
    print_rows(settings, _DESCRIBED, [description_row(found[transactional_id], _now_ms())])


def description_row(found: "TransactionDescription", now_ms: int) -> dict[str, Any]:
    """One line of `describe`; no start and duration unless a transaction is open."""
    start = found.start_ms if found.is_open else None
    return {
        "coordinator_id": found.coordinator,
        "transactional_id": found.transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "transaction_state": found.state,
        "transaction_timeout_ms": found.timeout_ms,
        "current_transaction_start_time_ms": start,
        "transaction_duration_ms": None if start is None else now_ms - start,
        "topic_partitions": [str(tp) for tp in found.partitions],
    }


@app.command(name="describe-producers")
def describe_producers(
    context: typer.Context,
    topic: Annotated[str, typer.Option(help="The topic.")],
    partition: Annotated[int, typer.Option(min=0, help="The partition's number.")],
) -> None:
    """Show the producers that a partition's leader remembers."""
    settings = settings_of(context)
    found = run_admin(settings, lambda admin: admin.describe_producers([(topic, partition)]))
    rows = [_producer_row(producer) for producers in found.values() for producer in producers]
    print_rows(settings, _PRODUCERS, rows)


def _producer_row(producer: "ActiveProducer") -> dict[str, Any]:
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "latest_coordinator_epoch": producer.coordinator_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp": producer.last_timestamp,
        "current_transaction_start_offset": _offset(producer.current_txn_start_offset),
    }


def _offset(offset: int) -> int | None:
    return None if offset < 0 else offset


@app.command(name="find-hanging")
def find_hanging(
    context: typer.Context,
    broker_id: Annotated[
        int | None, typer.Option(help="Only partitions that this broker leads.")
    ] = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option(
            metavar="MINUTES", min=0, help="Leave out those whose newest batch is younger."
        ),
    ] = 15,
    topic: TopicOption = None,
    partition: PartitionOption = None,
) -> None:
    """Find transactions that are open in a log and that no coordinator will end.

    No read_committed reader gets past such a transaction. `abort` ends it. Without --topic and
    --broker-id all partitions are searched.
    """
    if partition is not None and topic is None:
        raise UsageFailed("--partition needs --topic")
    settings = settings_of(context)
    found = run_admin(
        settings,
        lambda admin: _find(
            admin, broker_id, topic, partition, max_transaction_timeout * _MINUTE_MS
        ),
    )
    now_ms = _now_ms()
    print_rows(settings, _HANGING, [_hanging_row(opened, now_ms) for opened in found])
    if not settings.json:
        note(f"{counted(len(found), 'hanging transaction')}")


async def _find(
    admin: "Admin", broker_id: int | None, topic: str | None, partition: int | None, max_ms: int
) -> "list[OpenTransaction]":
    partitions = await _partitions(admin, broker_id, topic, partition)
    return await admin.find_hanging_transactions(partitions, max_transaction_timeout_ms=max_ms)


async def _partitions(
    admin: "Admin", broker_id: int | None, topic: str | None, partition: int | None
) -> "list[TopicPartition]":
    from barnabas_common.topic_partition import TopicPartition

    if broker_id is not None:
        known = [broker.broker_id for broker in (await admin.describe_cluster()).brokers]
        if broker_id not in known:
            raise CommandFailed(f"there is no broker {broker_id}; there are {known}")
    described = await admin.describe_topics(None if topic is None else [topic])
    found = [
        TopicPartition(each.topic, number.partition)
        for each in described
        for number in each.partitions
        if partition in (None, number.partition)
        and broker_id in (None, number.leader_id)
        and (number.leader_id >= 0 or partition is not None)
    ]
    if partition is not None and not found and broker_id is None:
        raise CommandFailed(f"topic {topic!r} has no partition {partition}")
    for each in described:
        for number in each.partitions:
            if number.leader_id < 0 and partition is None:
                note(f"{each.topic}-{number.partition} has no leader, so it is not searched")
    return sorted(found)


def _hanging_row(opened: "OpenTransaction", now_ms: int) -> dict[str, Any]:
    producer = opened.producer
    return {
        "topic": opened.topic_partition.topic,
        "partition": opened.topic_partition.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.current_txn_start_offset,
        "last_timestamp": producer.last_timestamp,
        "duration_min": (now_ms - producer.last_timestamp) // _MINUTE_MS,
    }


@app.command()
def abort(
    context: typer.Context,
    topic: Annotated[str, typer.Option(help="The topic.")],
    partition: Annotated[int, typer.Option(min=0, help="The partition's number.")],
    start_offset: Annotated[
        int | None, typer.Option(min=0, help="The first offset of the transaction.")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="The producer.")
    ] = None,
    producer_epoch: Annotated[
        int | None, typer.Option(min=0, max=2**15 - 1, help="Its epoch.")
    ] = None,
    coordinator_epoch: Annotated[
        int | None, typer.Option(min=-1, max=2**31 - 1, help="The coordinator's epoch.")
    ] = None,
) -> None:
    """End a hanging transaction in one partition by an abort marker.

    Name it by --start-offset, or by --producer-id, --producer-epoch and --coordinator-epoch, as
    `find-hanging` prints them. Do not abort a transaction that its coordinator knows.
    """
    named = (producer_id, producer_epoch, coordinator_epoch)
    if (start_offset is None) == (None in named) or (start_offset is not None and any_of(named)):
        raise UsageFailed(
            "name either --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch"
        )
    settings = settings_of(context)
    run_admin(settings, lambda admin: _abort(admin, (topic, partition), start_offset, named))
    row = {"topic": topic, "partition": partition, "aborted": True}
    print_message(settings, f"aborted the transaction in {topic}-{partition}", row)


def any_of(values: Sequence[int | None]) -> bool:
    """Whether one of them was given."""
    return any(value is not None for value in values)


async def _abort(
    admin: "Admin",
    partition: tuple[str, int],
    start_offset: int | None,
    named: tuple[int | None, int | None, int | None],
) -> None:
    producer_id, producer_epoch, coordinator_epoch = named
    where = f"{partition[0]}-{partition[1]}"
    (producers,) = (await admin.describe_producers([partition])).values()
    starts = {p.current_txn_start_offset: p for p in producers if _is_open(p)}
    if start_offset is not None:
        if start_offset not in starts:
            offsets = ", ".join(map(str, sorted(starts)))
            others = f"those that are open begin at {offsets}" if offsets else "none is open"
            raise CommandFailed(
                f"no open transaction of {where} begins at offset {start_offset}: {others}"
            )
        found = starts[start_offset]
        producer_id, producer_epoch = found.producer_id, found.producer_epoch
        coordinator_epoch = found.coordinator_epoch
    elif all(producer.producer_id != producer_id for producer in starts.values()):
        raise CommandFailed(f"producer {producer_id} has no open transaction in {where}")
    assert producer_id is not None
    assert producer_epoch is not None
    assert coordinator_epoch is not None
    # -1: no coordinator has ever written a marker for this producer.
    await admin.abort_transaction(partition, producer_id, producer_epoch, max(coordinator_epoch, 0))


def _is_open(producer: "ActiveProducer") -> bool:
    return producer.current_txn_start_offset >= 0


def _now_ms() -> int:
    return round(time.time() * 1000)

"""A copier in a process of its own, and what a run of several must have left behind.

    python -m tests.support.exact_copy BOOTSTRAP FROM TO GROUP TRANSACTIONAL_ID RECORDS

A copy goes to the partition of its original, up to RECORDS of them in a transaction. Every third
transaction is aborted when its records are in the logs; their values begin with `ABORTED`. The
process ends with an error when it is fenced; whoever started it starts it again.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas import Consumer, ConsumerRecord, OffsetAndMetadata, Producer
from barnabas_common.errors import BarnabasError
from barnabas_common.topic_partition import TopicPartition

ABORTED = b"aborted "
_TIMEOUT_MS = 20_000


class Deliberate(Exception):
    """This transaction is to be aborted."""


async def copy(
    bootstrap: str, source: str, target: str, group: str, name: str, records_at_once: int
) -> None:
    parent = os.getppid()
    async with (
        Consumer(
            source,
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=3_000,
            heartbeat_interval_ms=500,
        ) as consumer,
        Producer(bootstrap, transactional_id=name, transaction_timeout_ms=_TIMEOUT_MS) as producer,
    ):
        await producer.init_transactions()
        number = 0
        while os.getppid() == parent:
            records = await consumer.poll(timeout_ms=500, max_records=records_at_once)
            if records:
                number += 1
                await _transaction(consumer, producer, target, records, number % 3 == 0)


async def _transaction(
    consumer: Consumer,
    producer: Producer,
    target: str,
    records: Sequence[ConsumerRecord],
    aborts: bool,
) -> None:
    mark = ABORTED if aborts else b""
    offsets = {
        r.topic_partition: OffsetAndMetadata(r.offset + 1, "", r.leader_epoch) for r in records
    }
    try:
        async with producer.transaction():
            for record in records:
                value = mark + (record.value or b"")
                await producer.send(target, value, partition=record.partition)
            await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            if aborts:
                await producer.flush()
                raise Deliberate
    except Deliberate:
        _rewind(consumer, records)
    except BarnabasError as error:
        if error.fatal or error.retriable:  # fenced, or the outcome is not known
            raise
        print(f"aborted, and read again: {error}", file=sys.stderr, flush=True)
        _rewind(consumer, records)


def _rewind(consumer: Consumer, records: Sequence[ConsumerRecord]) -> None:
    first: dict[TopicPartition, int] = {}
    for record in records:
        first.setdefault(record.topic_partition, record.offset)
    for partition in consumer.assignment():
        if partition in first:
            consumer.seek(partition, first[partition])


# ---- the judgement

Values = Mapping[int, Sequence[bytes]]
"""By partition, in the order of the log."""


@dataclass
class Verdict:
    """What is wrong with a copy; values by partition in `disordered`."""

    lost: list[bytes] = field(default_factory=list)
    duplicated: list[bytes] = field(default_factory=list)
    aborted: list[bytes] = field(default_factory=list)
    disordered: list[int] = field(default_factory=list)

    def assert_good(self) -> None:
        assert self == Verdict(), {name: found[:20] for name, found in vars(self).items()}


def judge(
    originals: Mapping[int, Sequence[bytes]], copies: Mapping[int, Sequence[bytes]]
) -> Verdict:
    """Compare what read_committed readers find in both topics, by partition."""
    verdict = Verdict()
    for partition, wanted in originals.items():
        found = copies.get(partition, [])
        counted = Counter(found)
        verdict.lost += [value for value in wanted if not counted[value]]
        verdict.duplicated += [value for value in wanted if counted[value] > 1]
        verdict.aborted += [value for value in found if value.startswith(ABORTED)]
        known = set(wanted)
        if [v for v in dict.fromkeys(found) if v in known] != [v for v in wanted if v in counted]:
            verdict.disordered.append(partition)
    return verdict


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(copy(*arguments[:5], records_at_once=int(arguments[5])))  # type: ignore[misc]

"""Exactly once from topic to topic: consume, transform and produce in one transaction.

    python examples/exactly_once_copy.py FROM TO ID

Run it several times with different IDs: the copiers share the partitions of FROM. A copier that is
started again under its ID fences the one before, which may only seem to be gone.
"""

import os
import sys
from collections.abc import Sequence

from barnabas import ConsumerRecord, OffsetAndMetadata, TopicPartition
from barnabas.errors import BarnabasError
from barnabas.sync import Consumer, Producer


def main(source: str, target: str, copier: str) -> None:
    bootstrap = os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    group = f"copy-{source}-{target}"
    consumer = Consumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,  # offsets are committed with the copies
        auto_offset_reset="earliest",
        isolation_level="read_committed",  # what was aborted is not copied
        session_timeout_ms=6_000,
    )
    with consumer, Producer(bootstrap, transactional_id=f"{group}-{copier}") as producer:
        producer.init_transactions()
        while True:
            records = consumer.poll(max_records=20)
            try:
                with producer.transaction():
                    for record in records:
                        producer.send(
                            target,
                            louder(record.value),
                            record.key,
                            timestamp_ms=record.timestamp,
                            headers=record.headers,
                        )
                    offsets = {r.topic_partition: OffsetAndMetadata(r.offset + 1) for r in records}
                    producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            except BarnabasError as error:
                if error.fatal or error.retriable:  # fenced, or the outcome is not known
                    raise
                print(f"aborted, and read again: {error}", file=sys.stderr)
                read_again(consumer, records)


def louder(value: bytes | None) -> bytes | None:
    return None if value is None else value.upper()  # None deletes a key of a compacted topic


def read_again(consumer: Consumer, records: Sequence[ConsumerRecord]) -> None:
    first: dict[TopicPartition, int] = {}
    for record in records:
        first.setdefault(record.topic_partition, record.offset)
    for partition in consumer.assignment():
        if partition in first:
            consumer.seek(partition, first[partition])


if __name__ == "__main__":
    main(*sys.argv[1:4])

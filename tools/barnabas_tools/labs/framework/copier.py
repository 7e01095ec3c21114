"""A program of the labs: it copies the records of a topic, and says on its output what it does.

    python -m barnabas_tools.labs.framework.copier BOOTSTRAP FROM TO GROUP DELIVERY STUCK

DELIVERY is `exactly-once`, with ten records and their offsets in a transaction, or `at-least-once`,
which commits the offsets when the ten copies are acknowledged. After the copy of the record STUCK
it does nothing more.
"""

import os
import sys
from collections.abc import Sequence

from barnabas import ConsumerRecord, OffsetAndMetadata
from barnabas.sync import Consumer, Producer

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
RECORDS_AT_ONCE = 10


def main(bootstrap: str, source: str, target: str, group: str, delivery: str, stuck: str) -> None:
    parent = os.getppid()
    transactional = delivery == EXACTLY_ONCE
    with (
        Consumer(
            source,
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id="copier",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=2_000,
            heartbeat_interval_ms=500,
        ) as consumer,
        Producer(bootstrap, transactional_id="copier" if transactional else None) as producer,
    ):
        if transactional:
            producer.init_transactions()
        while True:
            records: list[ConsumerRecord] = []
            while len(records) < RECORDS_AT_ONCE:
                if os.getppid() != parent:  # the lab has ended
                    return
                wanted = RECORDS_AT_ONCE - len(records)
                records += consumer.poll(timeout_ms=200, max_records=wanted)
            offsets = {r.topic_partition: OffsetAndMetadata(r.offset + 1) for r in records}
            if transactional:
                with producer.transaction():
                    _copy(producer, target, records, stuck)
                    producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            else:
                _copy(producer, target, records, stuck)
                consumer.commit(offsets)
            print(f"committed after {(records[-1].value or b'').decode()}", flush=True)


def _copy(producer: Producer, target: str, records: Sequence[ConsumerRecord], stuck: str) -> None:
    for record in records:
        value = record.value or b""
        producer.send_and_wait(target, value, partition=0)
        print(f"worked {value.decode()}", flush=True)
        if value.decode() == stuck:
            print(f"works on {stuck}", flush=True)
            sys.stdin.read()  # ends with the lab


if __name__ == "__main__":
    main(*sys.argv[1:7])

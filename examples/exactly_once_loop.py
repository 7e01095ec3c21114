"""The same as `exactly_once_copy.py`, with the loop that is in the package.

python examples/exactly_once_loop.py FROM TO ID
"""

import asyncio
import os
import sys
from functools import partial

from barnabas import Consumer, ConsumerRecord, Producer, ProducerRecord, exactly_once


def louder(target: str, record: ConsumerRecord) -> list[ProducerRecord]:
    value = None if record.value is None else record.value.upper()
    return [
        ProducerRecord(
            target,
            value,
            record.key,
            timestamp_ms=record.timestamp,
            headers=record.headers,
        )
    ]


async def main(source: str, target: str, copier: str) -> None:
    bootstrap = os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    consumer = Consumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=f"copy-{source}-{target}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=6_000,
    )
    producer = Producer(bootstrap, transactional_id=f"copy-{source}-{target}-{copier}")
    async with consumer, producer:
        await exactly_once(consumer, producer, partial(louder, target))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))

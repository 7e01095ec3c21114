"""A member of a group in a process of its own: works on records, and writes down what it has done.

    python -m tests.support.group_member BOOTSTRAP TOPIC GROUP FILE

Every record is a line `partition offset value`, written before the next record is taken, so that
what was committed must be in the file. SIGTERM ends it in order.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

from barnabas import Consumer
from barnabas_common.topic_partition import TopicPartition

Work = Counter[tuple[int, int]]


async def work(bootstrap: str, topic: str, group: str, file: str) -> None:
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    async with Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=Path(file).stem,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=500,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
    ) as consumer:
        loop = asyncio.get_running_loop()
        ending: list[asyncio.Task[None]] = []
        loop.add_signal_handler(
            signal.SIGTERM, lambda: ending.append(loop.create_task(consumer.close()))
        )
        async for record in consumer:
            value = (record.value or b"").decode()
            os.write(out, f"{record.partition} {record.offset} {value}\n".encode())
        await asyncio.gather(*ending)


def done_in(folder: Path) -> Work:
    """How often each record was worked on, by partition and offset; a torn last line is not."""
    done: Work = Counter()
    for file in folder.glob("*.work"):
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                partition, offset, _ = line.split()
                done[int(partition), int(offset)] += 1
    return done


def ahead_of(done: Work, committed: dict[TopicPartition, int]) -> list[tuple[int, int]]:
    """What is committed and was never worked on."""
    return [
        (tp.partition, offset)
        for tp, end in committed.items()
        for offset in range(end)
        if (tp.partition, offset) not in done
    ]


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:5]))

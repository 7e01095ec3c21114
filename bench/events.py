"""The cost of events: recording one, reading the ring, and checking all partitions for moves.

    python bench/events.py

Produce and fetch record no events; all of this runs concurrently with them.
"""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from barnabas_broker.replica.partition.offset_moves import INTERVAL_SECONDS, OffsetMoves
from barnabas_broker.replica.partition.partition import Partition
from barnabas_common.events import EventKind, EventLog
from barnabas_common.topic_partition import TopicPartition

PARTITIONS = 1_000
ROUNDS = 50


def timed(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the seconds of the fastest call."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


def followers() -> list[Partition]:
    """Return partitions of a follower, with the attributes that a check reads."""
    return [
        cast(
            Partition,
            SimpleNamespace(
                topic_partition=TopicPartition("flights", number),
                log=SimpleNamespace(log_end_offset=0, high_watermark=0),
                leadership=None,
                leader_id=1,
                leader_epoch=0,
            ),
        )
        for number in range(PARTITIONS)
    ]


def main() -> None:
    events = EventLog(1, lambda: time.time_ns() // 1_000_000)
    key = TopicPartition("flights", 0)

    def record() -> None:
        for _ in range(PARTITIONS):
            events.record(
                EventKind.ISR_CHANGED, "broker 2 is slow", key, isr=[1, 3], leader_epoch=4
            )

    partitions: list[Any] = followers()
    moves = OffsetMoves(events)
    moves.look(partitions)
    idle = timed(lambda: moves.look(partitions))

    def move() -> None:
        for partition in partitions:
            partition.log.log_end_offset += 1
        moves.look(partitions)

    busy = timed(move)
    print(f"recording an event        {timed(record) / PARTITIONS * 1e6:6.2f} us")
    last = events.last_sequence
    print(f"a reader without news     {timed(lambda: events.since(last)) * 1e6:6.2f} us")
    print(f"a look at {PARTITIONS} idle       {idle * 1e6:6.0f} us")
    print(f"a look at {PARTITIONS} that move  {busy * 1e6:6.0f} us")
    print(
        f"share of a core           {idle / INTERVAL_SECONDS:6.2%} idle,"
        f" {busy / INTERVAL_SECONDS:.2%} when all move"
    )


if __name__ == "__main__":
    main()

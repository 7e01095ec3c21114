"""When the leader's high watermark moves, and to where.

Plain functions, called by `Leadership` after a local append, a follower's fetch, a committed ISR
change, and on becoming leader.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


def holds_back(in_maximal_isr: bool, caught_up: bool, alive: bool) -> bool:
    """Whether the high watermark waits for this follower.

    Beyond the maximal ISR it waits for a live follower that keeps up but is no member yet: else,
    with an ISR of the leader alone, the high watermark would follow every append at once and the
    follower, always one fetch behind it, could never join.
    """
    return in_maximal_isr or (caught_up and alive)


def next_high_watermark(
    current: int,
    leader_log_end_offset: int,
    awaited_log_end_offsets: Iterable[int],
    in_sync_count: int,
    min_in_sync: int,
) -> int:
    """The high watermark after looking at everybody's log end; never below `current`.

    With fewer committed members (`in_sync_count`) than `min_in_sync` it stays, whatever `acks` the
    records came with: what consumers have seen must be on that many replicas (Kafka 3.7 and later).
    A follower that has not fetched since this leader began has log end -1 and holds it too.
    """
    if in_sync_count < min_in_sync:
        return current
    return max(current, min((leader_log_end_offset, *awaited_log_end_offsets)))


class Hold(NamedTuple):
    """What keeps the high watermark below the log's end: a reason for people, empty when nothing
    does, and the followers it waits for, if it waits for followers."""

    because: str = ""
    by: tuple[int, ...] = ()


def what_holds(
    current: int,
    leader_log_end_offset: int,
    durable_end_offset: int,
    awaited_log_end_offsets: Mapping[int, int],
    in_sync_count: int,
    min_in_sync: int,
) -> Hold:
    """Why the high watermark is where it is; the same rules as `next_high_watermark`'s.

    `durable_end_offset` is the log's end unless only what is flushed counts.
    """
    if current >= leader_log_end_offset:
        return Hold()
    if in_sync_count < min_in_sync:
        return Hold(
            f"the ISR has {in_sync_count} of the {min_in_sync} members that min.insync.replicas"
            " wants: the high watermark stays until it has"
        )
    lowest = min(awaited_log_end_offsets.values(), default=leader_log_end_offset)
    if lowest < min(leader_log_end_offset, durable_end_offset):
        slowest = tuple(b for b, end in awaited_log_end_offsets.items() if end == lowest)
        who = " and ".join(f"broker {broker_id}" for broker_id in slowest)
        have = "have" if len(slowest) > 1 else "has"
        if lowest < 0:
            return Hold(f"{who} {have} not fetched from this leader yet", slowest)
        return Hold(f"{who} {have} fetched only up to offset {lowest}", slowest)
    if durable_end_offset < leader_log_end_offset:
        return Hold(
            "the ISR is so thin that only what is flushed to disk counts,"
            f" which ends at offset {durable_end_offset}"
        )
    return Hold()

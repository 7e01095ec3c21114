"""When the leader's high watermark moves, and to where.

Plain functions, called by `Leadership` after a local append, a follower's fetch, a committed ISR
change, and on becoming leader.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Progress(NamedTuple):
    """The values that the high watermark depends on.

    `end_offset` is the end of the part of the leader's own log that counts: in Kafka, the log end.
    `awaited` has the log end offsets of the followers that are waited for, by broker id; -1 if a
    follower has not fetched from this leader yet. `in_sync_count` is the size of the committed ISR.
    """

    high_watermark: int
    end_offset: int
    awaited: Mapping[int, int]
    in_sync_count: int
    min_in_sync: int


def holds_back(in_maximal_isr: bool, caught_up: bool, alive: bool) -> bool:
    """Whether the high watermark waits for this follower.

    Beyond the maximal ISR it waits for an alive follower that keeps up but is not a member yet.
    Otherwise, with an ISR of the leader alone, the high watermark would follow every append
    immediately, and the follower, always one fetch behind it, could never join.
    """
    return in_maximal_isr or (caught_up and alive)


def next_high_watermark(progress: Progress) -> int:
    """The smallest log end offset that is waited for; never below the present high watermark.

    With fewer committed members than `min_in_sync` it does not move, whatever `acks` the records
    came with: what consumers have seen must be on that many replicas (Kafka 3.7 and later).
    """
    if progress.in_sync_count < progress.min_in_sync:
        return progress.high_watermark
    return max(progress.high_watermark, min((progress.end_offset, *progress.awaited.values())))


class Hold(NamedTuple):
    """`because` says, for humans, why the high watermark is below the log end; empty if it is not.
    `by` has the followers that it waits for."""

    because: str = ""
    by: tuple[int, ...] = ()


def what_holds(progress: Progress) -> Hold:
    """Why the high watermark is where it is, by the rule of `next_high_watermark`."""
    if progress.high_watermark >= progress.end_offset:
        return Hold()
    if progress.in_sync_count < progress.min_in_sync:
        return Hold(
            f"the ISR has {progress.in_sync_count} of the {progress.min_in_sync} members that"
            " min.insync.replicas wants: the high watermark stays until it has"
        )
    lowest = min(progress.awaited.values(), default=progress.end_offset)
    if lowest >= progress.end_offset:
        return Hold()
    slowest = tuple(b for b, end in progress.awaited.items() if end == lowest)
    name = " and ".join(f"broker {broker_id}" for broker_id in slowest)
    have = "have" if len(slowest) > 1 else "has"
    if lowest < 0:
        return Hold(f"{name} {have} not fetched from this leader yet", slowest)
    return Hold(f"{name} {have} fetched only up to offset {lowest}", slowest)

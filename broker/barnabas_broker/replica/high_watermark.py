"""When the leader's high watermark moves, and to where.

Plain functions, called by `Leadership` after a local append, a follower's fetch, a committed ISR
change, and on becoming leader.
"""

from collections.abc import Iterable


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

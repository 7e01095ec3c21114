"""Where a follower cuts its log so that it becomes a prefix of the leader's.

By leader epochs, never by the high watermark, which lags and so would cut committed records
(KIP-101). The leader's answer names the epoch its end offset belongs to; without it, logs that
went through several short-lived leaders could keep a stretch that differs (KIP-279).
"""

from typing import NamedTuple

UNDEFINED = -1


class EpochEnd(NamedTuple):
    """The largest epoch not above the one asked for, and where it ends; -1, -1: undefined."""

    epoch: int
    end_offset: int


class Truncation(NamedTuple):
    """Cut to `offset`. When not `complete`, the leader must be asked again with the epoch that is
    then the follower's latest; each round lowers that epoch, so the rounds end."""

    offset: int
    complete: bool


def truncation(
    leader: EpochEnd, local: EpochEnd, log_end_offset: int, fetch_offset: int
) -> Truncation:
    """The decision of one round.

    `leader`: the leader's answer for the follower's latest epoch. `local`: the follower's own
    answer for `leader.epoch`. `fetch_offset`: where it was about to read, the place to cut when
    the leader knows nothing of its epoch.
    """
    if leader.end_offset == UNDEFINED:
        return Truncation(min(fetch_offset, log_end_offset), True)
    if leader.epoch == UNDEFINED or local.end_offset == UNDEFINED:
        return Truncation(min(leader.end_offset, log_end_offset), True)
    if local.epoch == leader.epoch:
        return Truncation(min(local.end_offset, leader.end_offset, log_end_offset), True)
    # The follower has nothing of the leader's epoch: all it has beyond its own older epoch came
    # from a leader this one never followed.
    return Truncation(min(local.end_offset, log_end_offset), False)


def diverges(last_fetched_epoch: int, fetch_offset: int, leader: EpochEnd) -> bool:
    """Whether a fetch shows a log that departs from the leader's.

    `leader`: the leader's own end of `last_fetched_epoch`, defined.
    """
    return leader.epoch < last_fetched_epoch or leader.end_offset < fetch_offset


def start_of_fetching(has_epochs: bool, log_end_offset: int, high_watermark: int) -> int:
    """Where a new follower begins: the leader's answer to its first fetch tells what to cut.

    A log without any epoch cannot be compared; all that is known to be common is what lies below
    the high watermark.
    """
    return log_end_offset if has_epochs else high_watermark


class OutOfRange(NamedTuple):
    """What to do after OFFSET_OUT_OF_RANGE, before fetching from the log's end again: cut to
    `truncate_to`, or drop everything and `restart_at`; both None: nothing."""

    truncate_to: int | None = None
    restart_at: int | None = None


def out_of_range(
    log_end_offset: int, leader_log_start_offset: int, leader_log_end_offset: int
) -> OutOfRange:
    """A leader that ends before the follower was elected uncleanly: cut to its end. A leader that
    starts beyond the follower has deleted what the follower lacks: nothing local is of use."""
    if leader_log_end_offset < log_end_offset:
        return OutOfRange(truncate_to=leader_log_end_offset)
    if leader_log_start_offset > log_end_offset:
        return OutOfRange(restart_at=leader_log_start_offset)
    return OutOfRange()

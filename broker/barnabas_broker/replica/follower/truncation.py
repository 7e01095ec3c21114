"""Where a follower truncates its log so that it becomes a prefix of the leader's. Pure decisions.

The decision uses leader epochs, never the high watermark: a follower's high watermark lags,
so truncating there would remove committed records (KIP-101). The leader's answer names the epoch
of its end offset; without it, logs that went through several short-lived leaders could keep
records that differ (KIP-279).

`TruncationPolicy` has two switches: Kafka before 0.11, which truncated to the high watermark, and
Kafka before 2.7, which asked for the leader's epoch before it fetched.
"""

from dataclasses import dataclass
from typing import NamedTuple

from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, EpochEnd


class Truncation(NamedTuple):
    """Truncate to `offset`. If not `complete`, the leader must be asked again with the follower's
    new latest epoch; each round lowers that epoch, so the rounds end."""

    offset: int
    complete: bool


def truncation(
    leader: EpochEnd, local: EpochEnd, log_end_offset: int, fetch_offset: int
) -> Truncation:
    """Decide one round.

    `leader` is the leader's answer for the follower's latest epoch, `local` the follower's own
    answer for `leader.epoch`. `fetch_offset`, the next offset to read, is where to truncate if the
    leader does not know the epoch.
    """
    if leader.end_offset == UNDEFINED:
        return Truncation(min(fetch_offset, log_end_offset), True)
    if leader.epoch == UNDEFINED or local.end_offset == UNDEFINED:
        return Truncation(min(leader.end_offset, log_end_offset), True)
    if local.epoch == leader.epoch:
        return Truncation(min(local.end_offset, leader.end_offset, log_end_offset), True)
    # The follower has no records of the leader's epoch: all that follows its own older epoch came
    # from a leader that the present one never followed.
    return Truncation(min(local.end_offset, log_end_offset), False)


def diverges(last_fetched_epoch: int, fetch_offset: int, leader: EpochEnd) -> bool:
    """Whether a fetch comes from a log that diverges from the leader's.

    `leader` is the leader's own end of `last_fetched_epoch`; it is defined.
    """
    return leader.epoch < last_fetched_epoch or leader.end_offset < fetch_offset


@dataclass(frozen=True)
class TruncationPolicy:
    """How a follower finds out where to truncate.

    `by_high_watermark` (`replica.truncation=high-watermark`): to its own high watermark, as Kafka
    did before 0.11. It sends no epoch, so that no leader can object. This loses acknowledged
    records and lets logs diverge: see `docs/guide/truncation.md`.

    `asks_before_fetching` (`replica.truncation.lookup=offsets-for-leader-epoch`): by a separate
    request, as Kafka did from 0.11 to 2.6; otherwise by the leader's answer to the first fetch.
    """

    by_high_watermark: bool = False
    asks_before_fetching: bool = False

    def start_of_fetching(
        self, latest_epoch: int | None, log_end_offset: int, high_watermark: int
    ) -> int:
        """Where a new follower starts; records above it are truncated immediately.

        A log without any epoch cannot be compared; only the records below the high watermark are
        known to be common.
        """
        if self.by_high_watermark or latest_epoch is None:
            return high_watermark
        return log_end_offset

    def highest_epoch(self, leader_epoch: int) -> int | None:
        """The highest leader epoch that a batch of the leader's may have; None if logs may diverge,
        and with them the order of their epochs."""
        return None if self.by_high_watermark else leader_epoch

    def must_ask(self, latest_epoch: int | None) -> bool:
        """Whether to ask the leader for the end of the latest epoch before anything is fetched."""
        return self.asks_before_fetching and not self.by_high_watermark and latest_epoch is not None

    def last_fetched_epoch(self, latest_epoch: int | None) -> int:
        """The epoch that a fetch carries, by which the leader detects a divergence; -1 for none."""
        if self.by_high_watermark or self.asks_before_fetching or latest_epoch is None:
            return UNDEFINED
        return latest_epoch


class OutOfRange(NamedTuple):
    """The step after OFFSET_OUT_OF_RANGE, before fetching from the log's end again: truncate to
    `truncate_to`, or remove everything and start at `restart_at`, or nothing if both are None."""

    truncate_to: int | None = None
    restart_at: int | None = None


def out_of_range(
    log_end_offset: int, leader_log_start_offset: int, leader_log_end_offset: int
) -> OutOfRange:
    """A leader whose log ends before the follower's was elected uncleanly: truncate to its end. A
    leader whose log starts beyond the follower's end has deleted what comes next: start there."""
    if leader_log_end_offset < log_end_offset:
        return OutOfRange(truncate_to=leader_log_end_offset)
    if leader_log_start_offset > log_end_offset:
        return OutOfRange(restart_at=leader_log_start_offset)
    return OutOfRange()

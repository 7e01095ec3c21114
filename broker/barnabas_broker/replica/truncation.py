"""Where a follower cuts its log so that it becomes a prefix of the leader's.

By leader epochs, never by the high watermark, which lags and so would cut committed records
(KIP-101). The leader's answer names the epoch its end offset belongs to; without it, logs that
went through several short-lived leaders could keep a stretch that differs (KIP-279).

`TruncationPolicy` has the two switches: Kafka before 0.11, which did cut by the high watermark,
and Kafka before 2.7, which asked for the leader's epoch before it fetched.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class TruncationPolicy:
    """How a follower finds out where to cut.

    `by_high_watermark` (`replica.truncation=high-watermark`): at its own high watermark, whatever
    the leader has, as Kafka did before 0.11; no epoch of its log travels, so that no leader can
    object. It loses acknowledged records and lets logs fork: see `docs/guide/truncation.md`.

    `asks_before_fetching` (`replica.truncation.lookup=offsets-for-leader-epoch`): by a request of
    its own, as Kafka did from 0.11 to 2.6; else by what the leader answers to its first fetch.
    """

    by_high_watermark: bool = False
    asks_before_fetching: bool = False

    def start_of_fetching(
        self, latest_epoch: int | None, log_end_offset: int, high_watermark: int
    ) -> int:
        """Where a new follower begins; what lies above it is cut at once.

        A log without any epoch cannot be compared; all that is known to be common is what lies
        below the high watermark.
        """
        if self.by_high_watermark or latest_epoch is None:
            return high_watermark
        return log_end_offset

    def must_ask(self, latest_epoch: int | None) -> bool:
        """Whether the leader must say where the latest epoch ends before anything is fetched."""
        return self.asks_before_fetching and not self.by_high_watermark and latest_epoch is not None

    def last_fetched_epoch(self, latest_epoch: int | None) -> int:
        """The epoch that travels with a fetch, by which the leader finds a divergence."""
        if self.by_high_watermark or self.asks_before_fetching or latest_epoch is None:
            return UNDEFINED
        return latest_epoch


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

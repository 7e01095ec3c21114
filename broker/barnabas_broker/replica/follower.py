"""A follower's replica while it is fetched: what an answer of the leader does to its log.

No network and no clock here: `LeaderFetcher` owns one `Follower` per partition and hands it what
the leader said.
"""

import logging
from enum import Enum, auto

from barnabas.error_code import ErrorCode
from barnabas.messages.fetch import FetchedPartition
from barnabas.record.batch import parse_header

from barnabas_broker.log.log import Log
from barnabas_broker.replica.fetcher_session import FetchOffsets
from barnabas_broker.replica.leader_range import LeaderRange
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.truncation import (
    UNDEFINED,
    EpochEnd,
    Truncation,
    TruncationPolicy,
    out_of_range,
    truncation,
)

logger = logging.getLogger(__name__)


class Reaction(Enum):
    """What a follower does about a partition's error."""

    BACK_OFF = auto()  # try again after `replica.fetch.backoff.ms`
    ASK_RANGE = auto()  # ask where the leader's log starts and ends
    GIVE_UP = auto()  # until the controller sends another LeaderAndIsr


def reaction(error_code: int, sent_epoch: int, current_epoch: int) -> Reaction:
    """The reaction to an error; the epochs tell whether a fenced request was simply late."""
    if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return Reaction.ASK_RANGE
    if error_code == ErrorCode.FENCED_LEADER_EPOCH and sent_epoch == current_epoch:
        return Reaction.GIVE_UP
    return Reaction.BACK_OFF


class Follower:
    """Follows one leader in one epoch. `must_ask`: not to fetch before `truncate` was called."""

    __slots__ = ("_policy", "is_behind", "leader_epoch", "must_ask", "offsets", "partition")

    def __init__(self, partition: Partition, policy: TruncationPolicy) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self._policy = policy
        partition.prepare_to_follow(policy)
        self.offsets = self._offsets()
        self.must_ask = policy.must_ask(self.latest_epoch)
        self.is_behind = True  # of the leader's high watermark, as of its last answer

    def is_throttled(self, broker_id: int) -> bool:
        """Whether the replica is among those that may be fetched at a limited rate only."""
        throttled = self.partition.follower_log().config.follower_replication_throttled_replicas
        return throttled.covers(self.partition.topic_partition.partition, broker_id)

    @property
    def latest_epoch(self) -> int | None:
        """The last epoch of which this log has anything."""
        return self.partition.follower_log().latest_epoch()

    def _offsets(self) -> FetchOffsets:
        """What to ask for next: a follower always goes on from its own log's end."""
        log = self.partition.follower_log()
        return FetchOffsets(
            log.log_end_offset,
            self._policy.last_fetched_epoch(log.latest_epoch()),
            log.log_start_offset,
        )

    def take(self, fetched: FetchedPartition) -> bool:
        """Append or truncate as the leader's answer says; True if the position changed.

        Raises:
            BarnabasError: the batches are corrupt, or the disk failed.
        """
        if fetched.diverging_epoch != UNDEFINED:
            self.truncate(EpochEnd(fetched.diverging_epoch, fetched.diverging_end_offset))
            return True
        log = self.partition.follower_log()
        moved = bool(fetched.records)
        if moved:
            self._append(log, fetched.records)
        self.is_behind = fetched.high_watermark > log.log_end_offset
        # The HW is set, not raised: a new leader may know less than its predecessor had told.
        log.update_high_watermark(min(fetched.high_watermark, log.log_end_offset))
        if fetched.log_start_offset > log.log_start_offset:
            log.maybe_increment_log_start_offset(fetched.log_start_offset)
            moved = True
        if moved:
            self.offsets = self._offsets()
        return moved

    def _append(self, log: Log, records: bytes) -> None:
        if self.offsets.fetch_offset != log.log_end_offset:
            raise AssertionError(
                f"{self.partition.topic_partition}: fetched from {self.offsets.fetch_offset},"
                f" but the log ends at {log.log_end_offset}"
            )
        if log.log_start_offset == log.log_end_offset:
            # The leader's log may start in the middle of its first batch; an empty follower then
            # gets that batch whole, from below its own end.
            base_offset = parse_header(records).base_offset
            if base_offset < log.log_end_offset:
                log.truncate_fully_and_start_at(base_offset)
        log.append_as_follower(records)

    def truncate(self, leader: EpochEnd) -> None:
        """Cut by where, in the leader's log, this one's latest epoch ended.

        Where the two have different epochs there, the leader must be asked again, by the next
        fetch or by another question.
        """
        log = self.partition.follower_log()
        local = EpochEnd(*log.end_offset_for_epoch(leader.epoch))
        unknown = log.high_watermark if self.must_ask else self.offsets.fetch_offset
        decision = truncation(leader, local, log.log_end_offset, unknown)
        self.must_ask = not decision.complete and self._policy.asks_before_fetching
        if decision.offset < log.log_end_offset:
            self._explain(leader, local, decision)
        self.partition.truncate(
            decision.offset,
            "leader-epoch",
            f"the leader's epoch {leader.epoch} ends at {leader.end_offset},"
            f" here epoch {local.epoch} at {local.end_offset}",
        )
        self.offsets = self._offsets()

    def _explain(self, leader: EpochEnd, local: EpochEnd, decision: Truncation) -> None:
        logger.info(
            "%s: the leader's epoch %d ends at %d, here epoch %d at %d: truncating from %d to %d%s",
            self.partition.topic_partition,
            *leader,
            *local,
            self.partition.follower_log().log_end_offset,
            decision.offset,
            "" if decision.complete else ", then asking again",
        )

    def back_in_range(self, leader: LeaderRange) -> bool:
        """Cut or restart the log so that the leader has what comes next; False: nothing to do."""
        log, before = self.partition.follower_log(), self.offsets
        decision = out_of_range(log.log_end_offset, *leader)
        if decision.truncate_to is not None:
            self.partition.truncate(
                decision.truncate_to,
                "out-of-range",
                f"the leader's log ends at {leader.log_end_offset}, before this one",
            )
        elif decision.restart_at is not None:
            logger.warning(
                "%s: the leader's log starts at %d, beyond the end %d here: starting over",
                self.partition.topic_partition,
                decision.restart_at,
                log.log_end_offset,
            )
            self.partition.truncate_fully(
                decision.restart_at, "the leader has deleted what comes next here"
            )
        self.offsets = self._offsets()
        return self.offsets != before

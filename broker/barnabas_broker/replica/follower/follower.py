"""A follower's replica while it is fetched: what the leader's answers do to its log.

No network and no clock here: `FollowedPartitions` has one `Follower` per partition.
"""

from barnabas_common.messages.fetch import FetchedPartition, FetchPartition
from barnabas_common.record.batch import parse_header

from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, EpochEnd
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.follower.fetch_state import PartitionFetchState, ReplicaState
from barnabas_broker.replica.follower.leader_endpoint import LeaderRange
from barnabas_broker.replica.follower.truncation import TruncationPolicy, out_of_range, truncation
from barnabas_broker.replica.partition.partition import Partition


class Follower:
    """Follows one leader in one epoch. `position` is what the next fetch asks for."""

    __slots__ = (
        "_max_bytes",
        "_policy",
        "is_behind",
        "leader_epoch",
        "partition",
        "position",
        "state",
    )

    def __init__(self, partition: Partition, policy: TruncationPolicy, max_bytes: int) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.is_behind = True  # the leader's high watermark, as of its last answer
        self._policy = policy
        self._max_bytes = max_bytes
        drop_unknown_end(partition, policy)
        self.position = self._next_position()
        must_ask = policy.must_ask(self.latest_epoch)
        self.state = PartitionFetchState(
            ReplicaState.TRUNCATING if must_ask else ReplicaState.FETCHING
        )

    def is_throttled(self, broker_id: int) -> bool:
        """Whether the replica may be fetched only at a limited rate."""
        throttled = self.partition.follower_log().config.follower_replication_throttled_replicas
        return throttled.covers(self.partition.topic_partition.partition, broker_id)

    @property
    def topic_id(self) -> str:
        """The topic id in this log; empty if it has none yet."""
        return self.partition.topic_id or ""

    @property
    def latest_epoch(self) -> int | None:
        """The newest epoch in this log, which may have no records yet; None without epochs."""
        return self.partition.follower_log().latest_epoch()

    def _next_position(self) -> FetchPartition:
        """A follower always continues at the end of its own log."""
        log = self.partition.follower_log()
        return FetchPartition(
            *self.partition.topic_partition,
            fetch_offset=log.log_end_offset,
            current_leader_epoch=self.leader_epoch,
            max_bytes=self._max_bytes,
            last_fetched_epoch=self._policy.last_fetched_epoch(log.latest_epoch()),
            log_start_offset=log.log_start_offset,
            topic_id=log.topic_id or "",
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
        has_records = bool(fetched.records)
        if has_records:
            self._append(log, fetched.records)
        self.is_behind = fetched.high_watermark > log.log_end_offset
        # Set, not raised: a new leader's high watermark may be below its predecessor's.
        log.update_high_watermark(min(fetched.high_watermark, log.log_end_offset))
        has_new_start = fetched.log_start_offset > log.log_start_offset
        if has_new_start:
            log.maybe_increment_log_start_offset(fetched.log_start_offset)
            self.position = self._next_position()
        return has_records or has_new_start

    def _append(self, log: UnifiedLog, records: bytes) -> None:
        if self.position.fetch_offset != log.log_end_offset:
            raise AssertionError(f"{self.position} was fetched, the end is {log.log_end_offset}")
        if log.log_start_offset == log.log_end_offset:
            # If the leader's log starts in the middle of its first batch, an empty follower gets
            # that whole batch, which starts below the follower's own end.
            base_offset = parse_header(records).base_offset
            if base_offset < log.log_end_offset:
                log.truncate_fully_and_start_at(base_offset)
        try:
            log.append_as_follower(records, self._policy.highest_epoch(self.leader_epoch))
        finally:  # also if it fails: the first batches may have been appended
            self.position = self._next_position()

    def truncate(self, leader: EpochEnd) -> bool:
        """Truncate to where this log's latest epoch ends in the leader's log.

        Returns False if the leader has other epochs there: it must then be asked again, by the next
        fetch or by another lookup (KIP-279).
        """
        log = self.partition.follower_log()
        local = log.end_offset_for_epoch(leader.epoch)
        # Where to truncate if the leader does not know the epoch.
        unknown = (
            log.high_watermark if self._policy.asks_before_fetching else self.position.fetch_offset
        )
        decision = truncation(leader, local, log.log_end_offset, unknown)
        self.partition.truncate(
            decision.offset,
            "leader-epoch",
            f"the leader's epoch {leader.epoch} ends at {leader.end_offset},"
            f" here epoch {local.epoch} at {local.end_offset}",
        )
        self.position = self._next_position()
        return decision.complete

    def back_in_range(self, leader: LeaderRange) -> bool:
        """Truncate or restart the log so that the leader has its end; False if nothing changed."""
        log, before = self.partition.follower_log(), self.position
        decision = out_of_range(log.log_end_offset, *leader)
        if decision.truncate_to is not None:
            self.partition.truncate(
                decision.truncate_to,
                "out-of-range",
                f"the leader's log ends at {leader.log_end_offset}, before this one",
            )
        elif decision.restart_at is not None:
            self.partition.truncate_fully(
                decision.restart_at, "the leader has deleted what comes next here"
            )
        self.position = self._next_position()
        return self.position != before


def drop_unknown_end(partition: Partition, policy: TruncationPolicy) -> None:
    """Truncate the part of the log that a new follower drops without asking its leader."""
    log = partition.follower_log()
    offset = policy.start_of_fetching(log.latest_epoch(), log.log_end_offset, log.high_watermark)
    if offset < log.log_end_offset:
        partition.truncate(
            offset,
            "high-watermark",
            "replica.truncation is high-watermark, and this is the follower's own"
            if policy.by_high_watermark
            else "the log has no leader epochs to be compared by",
        )

"""A leader's view of its followers, and the rules by which they join and leave the ISR.

Plain data and plain functions, called by `Leadership`. Times are monotonic seconds. The committed
ISR is the one in ZooKeeper. From a leader's proposal to change it until the controller's answer the
leader uses the *maximal* ISR, the larger of the two (KIP-497): a member about to leave still holds
the high watermark back, and so does a replica about to join.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

NEVER = -math.inf
UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class RemoteReplica:
    """A follower as its leader sees it, by the follower's own fetches.

    `last_fetch_leader_log_end_offset` is the leader's log end offset at the previous fetch.
    `sent_from` is the offset of the records that were last sent to it: if it requests them again,
    it may have refused them.
    """

    broker_id: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = 0
    last_fetch_time: float = NEVER
    last_caught_up_time: float = NEVER
    sent_from: int = UNKNOWN_OFFSET

    def record_fetch(self, fetch_offset: int, leader_log_end_offset: int, now: float) -> None:
        """Note a fetch, which proves that the follower has everything below `fetch_offset`.

        A follower of a busy leader never reaches the log end at the moment of its fetch. It counts
        as caught up at its previous fetch if it now has all that the leader had then.
        """
        if fetch_offset >= leader_log_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, now)
        elif fetch_offset >= self.last_fetch_leader_log_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, self.last_fetch_time)
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = max(
            leader_log_end_offset, self.last_fetch_leader_log_end_offset
        )
        self.last_fetch_time = now

    def is_caught_up(self, leader_log_end_offset: int, now: float, max_lag: float) -> bool:
        """Whether it has everything, or had everything within the last `max_lag` seconds."""
        return (
            self.log_end_offset == leader_log_end_offset
            or now - self.last_caught_up_time <= max_lag
        )

    def begin_epoch(
        self, leader_log_end_offset: int, in_sync: bool, keep_offset: bool, now: float
    ) -> None:
        """A new leader epoch starts: ISR members get a full lag time to catch up.

        A leader that led before keeps the offsets it knows; a new one has received no fetch yet.
        """
        self.last_caught_up_time = now if in_sync else NEVER
        if keep_offset:
            self.last_fetch_leader_log_end_offset = leader_log_end_offset
            self.last_fetch_time = self.last_caught_up_time
        else:
            self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_log_end_offset = 0
            self.last_fetch_time = NEVER


class InSyncReplicas(NamedTuple):
    """The committed ISR, and the ISR that is proposed, if one is."""

    committed: tuple[int, ...]
    proposed: tuple[int, ...] | None = None

    @property
    def in_flight(self) -> bool:
        """Whether the controller has not answered a proposal yet."""
        return self.proposed is not None

    @property
    def adds(self) -> bool:
        """Whether the proposal adds a replica."""
        return self.proposed is not None and len(self.proposed) > len(self.committed)

    @property
    def maximal(self) -> tuple[int, ...]:
        """The replicas the high watermark waits for: the larger of committed and proposed."""
        return max(self.committed, self.proposed or (), key=len)

    def expanding(self, broker_id: int) -> "InSyncReplicas":
        """This ISR with a proposal to add a replica."""
        return InSyncReplicas(self.committed, (*self.committed, broker_id))

    def shrinking(self, leaving: Iterable[int]) -> "InSyncReplicas":
        """This ISR with a proposal to remove replicas."""
        removed = tuple(leaving)
        return InSyncReplicas(self.committed, tuple(r for r in self.committed if r not in removed))

    def rolled_back(self) -> "InSyncReplicas":
        """This ISR without its proposal, as it is in ZooKeeper."""
        return InSyncReplicas(self.committed)


def is_follower_in_sync(log_end_offset: int, high_watermark: int, epoch_start_offset: int) -> bool:
    """Whether a follower outside the ISR may join it.

    It must have reached the high watermark, so that it lacks no committed record, and the start of
    the leader's epoch, so that its log has been compared with this leader's own (KIP-101).
    """
    return log_end_offset >= high_watermark and log_end_offset >= epoch_start_offset


def out_of_sync_replicas(
    members: Iterable[int],
    followers: Mapping[int, RemoteReplica],
    leader_log_end_offset: int,
    now: float,
    max_lag: float,
    max_messages: int | None = None,
) -> list[int]:
    """The ISR members that have not been caught up for `max_lag` seconds; never the leader."""
    return [
        member
        for member in members
        if member in followers
        and (
            not followers[member].is_caught_up(leader_log_end_offset, now, max_lag)
            or is_too_far_behind(followers[member], leader_log_end_offset, max_messages)
        )
    ]


def is_too_far_behind(
    follower: RemoteReplica, leader_log_end_offset: int, max_messages: int | None
) -> bool:
    """Apply `replica.lag.max.messages`, which Kafka removed in 0.9 (KIP-16).

    No number of records fits a topic with varying traffic: one burst above it removes healthy
    followers.
    """
    return max_messages is not None and (
        leader_log_end_offset - follower.log_end_offset > max_messages
    )


def describe_lag(
    follower: RemoteReplica,
    last_fetch_time: float,
    leader_log_end_offset: int,
    now: float,
    max_lag: float,
    max_messages: int | None = None,
) -> str:
    """Why a member is late, as text for humans: it is stuck, or slow, or never fetched."""
    if follower.is_caught_up(leader_log_end_offset, now, max_lag):
        behind = leader_log_end_offset - follower.log_end_offset
        return (
            f"broker {follower.broker_id} keeps up, but is {behind} records behind just now,"
            f" replica.lag.max.messages is {max_messages}"
        )
    limit = f"replica.lag.time.max.ms is {max_lag:g} s"
    name = f"broker {follower.broker_id}"
    if follower.log_end_offset == UNKNOWN_OFFSET and last_fetch_time == NEVER:
        return f"{name} has never fetched from this leader, {limit}"
    caught_up = f"has not caught up for {now - follower.last_caught_up_time:.1f} s"
    behind = leader_log_end_offset - follower.log_end_offset
    if now - last_fetch_time >= max_lag:
        return f"{name} {caught_up} and has not fetched for {now - last_fetch_time:.1f} s, {limit}"
    return f"{name} {caught_up}: it fetches, but is {behind} records behind, {limit}"


def effective_min_in_sync(min_insync_replicas: int, replica_count: int) -> int:
    """`min.insync.replicas`, but never more than there are replicas."""
    return min(min_insync_replicas, replica_count)

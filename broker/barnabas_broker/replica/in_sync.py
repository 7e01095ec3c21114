"""Who is in sync: what a leader knows of its followers, and who joins or leaves the ISR.

Plain data and plain functions, called by `Leadership`. Times are monotonic seconds. The committed
ISR is the one in ZooKeeper; between a leader's wish to change it and the controller's answer the
leader works with the *maximal* ISR, the larger of the two (KIP-497): a member about to leave still
holds the high watermark back, and so does one about to join.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

NEVER = -math.inf
UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class RemoteReplica:
    """A follower as its leader sees it: all of it learned from the follower's own fetches.

    `last_fetch_leader_log_end_offset` is where the leader's log ended at the previous fetch.
    """

    broker_id: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = 0
    last_fetch_time: float = NEVER
    last_caught_up_time: float = NEVER

    def record_fetch(self, fetch_offset: int, leader_log_end_offset: int, now: float) -> None:
        """A fetch at `fetch_offset` proves that the follower has everything below it.

        A follower of a busy leader never reaches the log's end at the moment it asks. It counts as
        caught up at its previous fetch if it now has all that the leader had then.
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
        """Has it all, or had it all within the last `max_lag` seconds."""
        return (
            self.log_end_offset == leader_log_end_offset
            or now - self.last_caught_up_time <= max_lag
        )

    def begin_epoch(
        self, leader_log_end_offset: int, in_sync: bool, keep_offset: bool, now: float
    ) -> None:
        """A new leader epoch begins: ISR members get a full lag time to prove themselves.

        A leader that led before keeps the offsets it knows; a new one has seen no fetch yet.
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
    """The committed ISR, and the change to it that is under way, if any."""

    committed: tuple[int, ...]
    proposed: tuple[int, ...] | None = None

    @property
    def in_flight(self) -> bool:
        """Whether the controller has yet to answer a change."""
        return self.proposed is not None

    @property
    def maximal(self) -> tuple[int, ...]:
        """Everybody the high watermark must wait for: the larger of committed and proposed."""
        if self.proposed is not None and len(self.proposed) > len(self.committed):
            return self.proposed
        return self.committed

    def expanding(self, broker_id: int) -> "InSyncReplicas":
        """On the way to include one more replica."""
        return InSyncReplicas(self.committed, (*self.committed, broker_id))

    def shrinking(self, leaving: Iterable[int]) -> "InSyncReplicas":
        """On the way to exclude these replicas."""
        gone = tuple(leaving)
        return InSyncReplicas(self.committed, tuple(r for r in self.committed if r not in gone))

    def rolled_back(self) -> "InSyncReplicas":
        """The change was refused: back to what is in ZooKeeper."""
        return InSyncReplicas(self.committed)


def may_join(log_end_offset: int, high_watermark: int, epoch_start_offset: int) -> bool:
    """Whether an out-of-sync follower has enough to become a member.

    Beyond the high watermark, so that no committed record is missing from it; and beyond the start
    of the leader's epoch, so that its log has been compared with this leader's own (KIP-101).
    """
    return log_end_offset >= high_watermark and log_end_offset >= epoch_start_offset


def laggards(
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
    """`replica.lag.max.messages`, gone from Kafka since 0.9 (KIP-16): no number of records is right
    for a topic that is quiet by night, and one burst above it throws healthy followers out."""
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
    """Why a member is too late, for people: it is stuck, or slow, or never came."""
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

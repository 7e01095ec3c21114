"""The positions of a consumer. Plain data and decisions: no clock, no network.

Each partition has two offsets: `position`, the next to return to the application, and
`fetch_offset`, the next to fetch; the records in between are buffered. Every seek and reset raises
`version`, so that answers to earlier requests are recognized and dropped.
"""

from collections.abc import Iterable
from enum import Enum

from barnabas_common.errors import OffsetOutOfRangeError, error_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_common.messages.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, EpochEndOffset
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.metadata import ClusterMetadata

UNKNOWN = -1
_MOST_DEPOSED = 10  # answers of a deposed leader about one position: some seconds
RESET_TIMESTAMPS = {"latest": LATEST_TIMESTAMP, "earliest": EARLIEST_TIMESTAMP}


class LogTruncationError(OffsetOutOfRangeError):
    """Records this consumer has read were truncated after an unclean election (KIP-320).

    `safe_offset` is the end of the remaining log; `seek` there to continue.
    """

    def __init__(self, message: str, safe_offset: int) -> None:
        self.safe_offset = safe_offset
        super().__init__(message)


class TopicPartitionState:
    """One assigned partition.

    `reset_to` is the ListOffsets timestamp that will give the position, or None when it is known.
    `awaits_committed`: the group's committed offset is looked up first. `position_epoch` is the
    leader epoch of the last batch that records were taken from. `paused`: not to be fetched now.
    `fetched_epoch` is the leader epoch of the last batch before `fetch_offset`; `checked_epoch` the
    last leader epoch whose leader is known to have that batch too. `blocked` until an error has
    been raised.
    """

    __slots__ = ("awaits_committed", "blocked", "buffered", "checked_epoch", "deposed",
                 "failures", "fetch_offset", "fetched_epoch", "high_watermark", "log_start_offset",
                 "not_before", "paused", "position", "position_epoch", "reset_to",
                 "topic_partition", "version")  # fmt: skip

    def __init__(self, topic_partition: TopicPartition, reset_to: int | None) -> None:
        self.topic_partition = topic_partition
        self.reset_to = reset_to
        self.position = UNKNOWN
        self.fetch_offset = UNKNOWN
        self.fetched_epoch = -1
        self.checked_epoch = -1
        self.high_watermark = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.buffered = 0
        self.version = 0
        self.blocked = False
        self.failures = self.deposed = 0
        self.not_before = 0.0
        self.awaits_committed = False
        self.paused = False
        self.position_epoch = -1

    @property
    def known(self) -> bool:
        return self.position >= 0

    def seek(self, offset: int) -> None:
        """Continue at `offset`; buffered records become stale."""
        self.version += 1
        self.position = self.fetch_offset = offset
        self.fetched_epoch = self.checked_epoch = self.position_epoch = -1
        self.reset_to = None
        self.deposed = 0
        self.buffered = 0
        self.blocked = False
        self.not_before = 0.0
        self.awaits_committed = False

    def rewind(self) -> None:
        """Fetch again from `position`. A new leader must have what was read before it (KIP-320)."""
        self.go_on_from(self.position, self.position_epoch)

    def go_on_from(self, offset: int, leader_epoch: int) -> None:
        """Continue at `offset`; `leader_epoch` is that of the last record read before it, or -1."""
        self.seek(offset)
        self.fetched_epoch = self.position_epoch = leader_epoch

    def await_reset(self, timestamp: int) -> None:
        """Have the position looked up by `timestamp`."""
        self.seek(UNKNOWN)
        self.reset_to = timestamp

    def fetchable(self, now: float, buffer_limit: int) -> bool:
        """Whether to fetch more: the position is known and the buffer is not full."""
        return (
            self.known and not self.blocked and now >= self.not_before
        ) and self.buffered < buffer_limit

    def start_from(self, offset: int | None, leader_epoch: int, policy: str) -> None:
        """Continue where the group has committed, or where the policy says if it has not.

        The committed leader epoch is validated like that of a fetched batch (KIP-320).
        """
        if offset is not None:
            self.go_on_from(offset, leader_epoch)
        elif policy in RESET_TIMESTAMPS:
            self.await_reset(RESET_TIMESTAMPS[policy])
        self.awaits_committed = False

    def needs_check(self, leader_epoch: int) -> bool:
        """Whether this leader may lack records that were fetched from another one.

        Its epoch may be lower: the topic was created again, or epochs were forgotten with records.
        """
        return (
            self.known
            and self.fetched_epoch >= 0
            and leader_epoch not in (self.checked_epoch, self.fetched_epoch)
        )

    def fetched(self, next_offset: int, leader_epoch: int, size: int) -> None:
        """Batches up to `next_offset` arrived, `size` bytes, the last of `leader_epoch`."""
        self.fetch_offset = next_offset
        self.fetched_epoch = leader_epoch
        self.buffered += size
        self.failures = 0


class FetchStep(Enum):
    """The consumer's reaction to a leader's answer about one partition."""

    ACCEPT = "records, or none yet"
    RESET = "the offset is out of range: apply auto_offset_reset"
    RETRY = "fetch again, possibly from another broker"
    RAISE = "raise an error in the application"


def fetch_step(answer: FetchedPartition, policy: str) -> FetchStep:
    """The reaction to an answer that is not outdated."""
    code = answer.error_code
    if code == ErrorCode.NONE:
        return FetchStep.ACCEPT
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return FetchStep.RAISE if policy == "none" else FetchStep.RESET
    # Retriable for a producer; a consumer would read the same damaged bytes again.
    if code == ErrorCode.CORRUPT_MESSAGE:
        return FetchStep.RAISE
    return FetchStep.RETRY if error_for(code).retriable else FetchStep.RAISE


def is_of_deposed_leader(
    state: TopicPartitionState, answer: EpochEndOffset, leader_epoch: int
) -> bool:
    """Whether the fetched epoch is unknown only to a leader that has been replaced.

    It is later than the one under which was asked: the leader does not have its records, because it
    does not know yet that there is another one. A reset would read records again, or skip some.
    (Kafka asks no leader of an older epoch: KIP-320.) After several such answers in a row it is the
    offset that is not of this log.
    """
    return (
        answer.leader_epoch < 0
        and leader_epoch < state.fetched_epoch
        and state.deposed < _MOST_DEPOSED
    )


def apply_epoch_end(
    state: TopicPartitionState, answer: EpochEndOffset, leader_epoch: int, policy: str
) -> LogTruncationError | None:
    """Apply the end of the fetched epoch in the new leader's log: go back if it is lower (KIP-320).

    Truncated records that were only buffered are dropped: the application has not seen them. If
    delivered ones were truncated too, `auto_offset_reset` "none" makes it an error; otherwise
    reading continues where the logs diverge.
    """
    state.checked_epoch = leader_epoch
    end = answer.end_offset
    if end >= state.fetch_offset and answer.leader_epoch >= 0:
        return None
    if end >= state.position and answer.leader_epoch >= 0:
        state.rewind()
        state.checked_epoch = leader_epoch
        return None
    safe = max(end, 0)
    delivered = state.position
    if policy == "none":
        state.blocked = True
        return LogTruncationError(
            f"{state.topic_partition}: records from {safe} up to {delivered} were read here and "
            "are no longer in the log",
            safe,
        )
    if answer.leader_epoch < 0:
        state.await_reset(RESET_TIMESTAMPS[policy])
    else:
        state.seek(safe)
    return None


class SubscriptionState:
    """The assignment: every partition this consumer reads, in a fixed order.

    `in_group`: partitions start at the offset that the group has committed.
    """

    def __init__(self, policy: str, in_group: bool = False) -> None:
        self.policy = policy
        self._in_group = in_group
        self.states: dict[TopicPartition, TopicPartitionState] = {}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their position."""
        old = self.states
        self.states = {tp: old.get(tp) or self._new(tp) for tp in partitions}
        for tp, state in old.items():
            if tp not in self.states:
                state.version += 1  # records fetched for it are stale

    def led_by(
        self, broker_id: int, metadata: ClusterMetadata
    ) -> list[tuple[TopicPartitionState, int]]:
        """The partitions that a broker leads, each with the leader epoch."""
        led = []
        for tp, state in self.states.items():
            leader = metadata.leader(tp)
            if leader is not None and leader.broker_id == broker_id:
                led.append((state, leader.epoch))
        return led

    def undefined(self) -> list[TopicPartition]:
        """Those without a position if `auto_offset_reset` is "none"."""
        return [
            tp
            for tp, state in self.states.items()
            if not state.known and state.reset_to is None and not state.awaits_committed
        ]

    def unreset(self) -> list[TopicPartitionState]:
        """Those whose position must be looked up."""
        return [state for state in self.states.values() if state.reset_to is not None]

    def awaiting_committed(self) -> list[TopicPartitionState]:
        """Those whose committed offset must be looked up."""
        return [state for state in self.states.values() if state.awaits_committed]

    def _new(self, topic_partition: TopicPartition) -> TopicPartitionState:
        if not self._in_group:
            return TopicPartitionState(topic_partition, RESET_TIMESTAMPS.get(self.policy))
        state = TopicPartitionState(topic_partition, None)
        state.awaits_committed = True
        return state

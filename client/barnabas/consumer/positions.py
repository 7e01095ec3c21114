"""Where a consumer stands in each partition. Plain data and decisions: no clock, no network.

Two offsets count per partition: `position`, the next to hand to the application, and
`fetch_offset`, the next to ask the leader for; what lies between is buffered. Every jump (a seek, a
reset) raises `version`, so that answers to questions from before it are recognised and dropped.
"""

from collections.abc import Iterable
from enum import Enum

from barnabas.cluster.metadata import ClusterMetadata
from barnabas.error_code import ErrorCode
from barnabas.errors import OffsetOutOfRangeError
from barnabas.messages.fetch import FetchedPartition
from barnabas.messages.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, EpochEndOffset
from barnabas.topic_partition import TopicPartition

UNKNOWN = -1
RESET_TIMESTAMPS = {"latest": LATEST_TIMESTAMP, "earliest": EARLIEST_TIMESTAMP}


class LogTruncationError(OffsetOutOfRangeError):
    """Records this consumer has already read are gone: an unclean election cut the log (KIP-320).

    `safe_offset` is where the surviving part ends; `seek` there to go on.
    """

    def __init__(self, message: str, safe_offset: int) -> None:
        self.safe_offset = safe_offset
        super().__init__(message)


class PartitionPosition:
    """One assigned partition.

    `reset_to` is the ListOffsets timestamp that will give the position, or None when it is known.
    `fetched_epoch` is the leader epoch of the last batch before `fetch_offset`; `checked_epoch` the
    newest leader epoch whose leader is known to have that batch too. `blocked` while an error waits
    to be raised.
    """

    __slots__ = ("blocked", "buffered", "checked_epoch", "failures", "fetch_offset",
                 "fetched_epoch", "high_watermark", "log_start_offset", "not_before", "position",
                 "reset_to", "topic_partition", "version")  # fmt: skip

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
        self.failures = 0
        self.not_before = 0.0

    @property
    def known(self) -> bool:
        return self.position >= 0

    def seek(self, offset: int) -> None:
        """Go on from `offset`, forgetting everything buffered."""
        self.version += 1
        self.position = self.fetch_offset = offset
        self.fetched_epoch = self.checked_epoch = -1
        self.reset_to = None
        self.buffered = 0
        self.blocked = False
        self.not_before = 0.0

    def rewind(self) -> None:
        """Fetch again from `position`."""
        self.seek(self.position)

    def await_reset(self, timestamp: int) -> None:
        """The position is to be looked up by `timestamp`."""
        self.seek(UNKNOWN)
        self.reset_to = timestamp

    def fetchable(self, now: float, buffer_limit: int) -> bool:
        """Whether to ask for more: the position is known and the buffer not full."""
        return (
            self.known and not self.blocked and now >= self.not_before
        ) and self.buffered < buffer_limit

    def needs_check(self, leader_epoch: int) -> bool:
        """Whether a new leader might lack what was fetched from an older one."""
        return (
            self.known
            and self.fetched_epoch >= 0
            and leader_epoch > max(self.checked_epoch, self.fetched_epoch)
        )

    def fetched(self, next_offset: int, leader_epoch: int, size: int) -> None:
        """Batches up to `next_offset` arrived, `size` bytes, the last of `leader_epoch`."""
        self.fetch_offset = next_offset
        self.fetched_epoch = leader_epoch
        self.buffered += size
        self.failures = 0


class FetchStep(Enum):
    """What a leader's answer about one partition means for its reader."""

    ACCEPT = "records, or none yet"
    RESET = "the offset is gone: go where auto_offset_reset says"
    RETRY = "ask again, perhaps another broker"
    RAISE = "tell the application"


def judge_fetched(answer: FetchedPartition, policy: str) -> FetchStep:
    """The next step after an answer to a question that is still current."""
    code = answer.error_code
    if code == ErrorCode.NONE:
        return FetchStep.ACCEPT
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return FetchStep.RAISE if policy == "none" else FetchStep.RESET
    # Retriable for a producer; a consumer would read the same damaged bytes again.
    if code == ErrorCode.CORRUPT_MESSAGE:
        return FetchStep.RAISE
    known = code in ErrorCode.__members__.values()
    return FetchStep.RETRY if known and ErrorCode(code).retriable else FetchStep.RAISE


def apply_epoch_end(
    state: PartitionPosition, answer: EpochEndOffset, leader_epoch: int, policy: str
) -> LogTruncationError | None:
    """The new leader said where our epoch ends in its log: go back if ours went further (KIP-320).

    Buffered records that are gone are dropped in silence, nobody has seen them. If even delivered
    ones are gone, `auto_offset_reset` "none" makes it an error; otherwise reading goes on from
    where the logs part.
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


class Positions:
    """The assignment: every partition this consumer reads, in a fixed order."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.states: dict[TopicPartition, PartitionPosition] = {}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their position."""
        old = self.states
        self.states = {tp: old.get(tp) or self._new(tp) for tp in partitions}
        for tp, state in old.items():
            if tp not in self.states:
                state.version += 1  # what was fetched for it is not delivered any more

    def led_by(
        self, broker_id: int, metadata: ClusterMetadata
    ) -> list[tuple[PartitionPosition, int]]:
        """The partitions a broker leads, each with the leader's epoch."""
        led = []
        for tp, state in self.states.items():
            leader = metadata.leader(tp)
            if leader is not None and leader.broker_id == broker_id:
                led.append((state, leader.epoch))
        return led

    def undefined(self) -> list[TopicPartition]:
        """Those without a position, and without a rule to find one: `auto_offset_reset` is none."""
        return [
            tp for tp, state in self.states.items() if not state.known and state.reset_to is None
        ]

    def unreset(self) -> list[PartitionPosition]:
        """Those whose position has to be looked up."""
        return [state for state in self.states.values() if state.reset_to is not None]

    def _new(self, topic_partition: TopicPartition) -> PartitionPosition:
        return PartitionPosition(topic_partition, RESET_TIMESTAMPS.get(self.policy))

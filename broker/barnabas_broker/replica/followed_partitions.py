"""The partitions this broker follows at one leader: what to ask for, and what answers do to them.

Nothing here awaits. Partitions fail alone: one in trouble pauses or is given up, the others go on.
`LeaderFetcher` carries the questions and the answers.
"""

import logging
from collections.abc import Callable

from barnabas.error_code import ErrorCode
from barnabas.errors import BarnabasError
from barnabas.events import EventKind, Value
from barnabas.messages.fetch import FetchedPartition, FetchRequest
from barnabas.messages.offsets import EpochEndOffset, EpochPartition
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.epoch_lookup import EpochLookups
from barnabas_broker.replica.fetcher_context import FetcherContext
from barnabas_broker.replica.fetcher_session import FetcherSession
from barnabas_broker.replica.follower import Follower, Reaction, reaction
from barnabas_broker.replica.leader_range import LeaderRange
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.truncation import EpochEnd

logger = logging.getLogger(__name__)

# The first pause after a partition's error, in seconds; doubled up to `replica.fetch.backoff.ms`.
# After an election a follower often asks its new leader a few ms before that one knows it leads.
FIRST_PAUSE = 0.02


class FollowedPartitions:
    """`out_of_range(partition, follower)` is to find out the leader's range, and to hand the answer
    to `back_in_range`."""

    def __init__(
        self,
        leader_id: int,
        context: FetcherContext,
        session: FetcherSession,
        out_of_range: Callable[[TopicPartition, Follower], None],
    ) -> None:
        self.lookups = EpochLookups(context.broker_id, context.timeout)
        self._leader_id = leader_id
        self._context = context
        self._session = session
        self._out_of_range = out_of_range
        self._followers: dict[TopicPartition, Follower] = {}
        self._paused_until: dict[TopicPartition, float] = {}
        self._last_pause: dict[TopicPartition, float] = {}
        self._asking: dict[TopicPartition, None] = {}

    def add(self, partition: Partition) -> None:
        """Follow the partition from where its log allows; replaces what was known of it."""
        key = partition.topic_partition
        self.drop(key)
        self._followers[key] = follower = Follower(partition, self._context.truncation)
        self.lookups.note(key, follower)
        self._session.moved(key)

    def drop(self, key: TopicPartition) -> None:
        """Follow it no more; an answer still on its way is ignored."""
        if self._followers.pop(key, None) is not None:
            self._paused_until.pop(key, None)
            self._last_pause.pop(key, None)
            self._asking.pop(key, None)
            self.lookups.drop(key)
            self._session.gone(key)

    # ---- what to ask for

    def nothing_to_fetch(self) -> bool:
        """Whether every partition is paused or asking for its range."""
        return len(self._followers) == len(self._paused_until) + len(self._asking)

    def _is_ready(self, key: TopicPartition) -> bool:
        """Whether a partition is to be fetched now."""
        return not (key in self._paused_until or key in self._asking or key in self.lookups.pending)

    def questions(self) -> dict[TopicPartition, EpochPartition]:
        """Where epochs end, for those that must know before they fetch."""
        return self.lookups.questions(self._paused_until)

    def next_request(self) -> FetchRequest:
        """One fetch for all that are ready."""
        keys = list(self._followers) if self._session.is_full else self._session.to_name()
        positions = {}
        for key in keys:
            if self._is_ready(key):
                follower = self._followers[key]
                positions[key] = self._session.position(
                    key, follower.leader_epoch, follower.offsets
                )
        return self._session.request(positions, self.shortest_pause())

    def shortest_pause(self) -> float | None:
        """Seconds until a paused partition may be asked for again; None without one."""
        if not self._paused_until:
            return None
        return max(0.0, min(self._paused_until.values()) - self._context.now())

    def resume_paused(self) -> None:
        """Take up again those whose pause is over."""
        if self._paused_until:
            now = self._context.now()
            for key, until in list(self._paused_until.items()):
                if until > now:
                    continue
                if self._is_held_back(key):
                    self._hold_back(key)
                    continue
                del self._paused_until[key]
                self._session.moved(key)

    # ---- one partition's answer

    def truncate(self, key: TopicPartition, asked: EpochPartition, answer: EpochEndOffset) -> None:
        """The leader told where an epoch ends."""
        follower = self._followers.get(key)
        if follower is None or asked.current_leader_epoch != follower.leader_epoch:
            return
        if answer.error_code:
            self._react(key, follower, answer.error_code, asked.current_leader_epoch)
            return
        try:
            follower.truncate(EpochEnd(answer.leader_epoch, answer.end_offset))
        except BarnabasError as error:
            logger.warning("%s: cannot be truncated: %s", key, error)
            self._pause(key, f"the log cannot be truncated: {error}")
            return
        self.lookups.note(key, follower)
        self._session.moved(key)

    def take(self, fetched: FetchedPartition) -> None:
        """The leader sent records, or an error."""
        key = TopicPartition(fetched.topic, fetched.partition)
        follower, asked = self._followers.get(key), self._session.requested(key)
        if (
            follower is None
            or asked is None
            or not self._is_ready(key)
            or asked.fetch_offset != follower.offsets.fetch_offset
            or asked.current_leader_epoch != follower.leader_epoch
        ):
            return  # the role changed while the request was out: the answer is to an old question
        if fetched.error_code:
            self._react(key, follower, fetched.error_code, asked.current_leader_epoch)
            return
        try:
            if follower.take(fetched):
                self._session.moved(key)
            if fetched.records:
                self._count_copied(key, follower, len(fetched.records))
            self._last_pause.pop(key, None)
        except BarnabasError as error:
            logger.warning("%s: fetched data refused: %s", key, error)
            self._pause(key, f"the fetched data was refused: {error}")
        except Exception:
            logger.exception("%s: fetching stops until the next LeaderAndIsr", key)
            why = "an unforeseen error: this follower waits for LeaderAndIsr"
            self.report(EventKind.FETCH_FAILED, why, key)
            self.drop(key)

    def back_in_range(
        self, key: TopicPartition, follower: Follower, answer: LeaderRange | ErrorCode
    ) -> None:
        """The leader, which did not have the offset asked for, told what it has: start there."""
        if self._followers.get(key) is not follower:
            return
        self._asking.pop(key, None)
        if isinstance(answer, ErrorCode):
            self._react(key, follower, answer, follower.leader_epoch)
            return
        try:
            moved = follower.back_in_range(answer)
        except BarnabasError as error:
            logger.warning("%s: cannot start where the leader's log does: %s", key, error)
            moved = False
        if moved:
            self._session.moved(key)
        else:
            # asking the same again at once would get the same answer
            self._pause(key, "the leader's log does not hold the offset asked for")

    def _react(
        self, key: TopicPartition, follower: Follower, error_code: int, sent_epoch: int
    ) -> None:
        code = ErrorCode(error_code).name
        match reaction(error_code, sent_epoch, follower.leader_epoch):
            case Reaction.ASK_RANGE:
                self._asking[key] = None
                self._session.gone(key)
                self._out_of_range(key, follower)
            case Reaction.GIVE_UP:
                logger.info("%s: epoch %d is over, waiting for LeaderAndIsr", key, sent_epoch)
                self.report(
                    EventKind.FETCH_FAILED,
                    f"the leader answered {code}: this follower waits for LeaderAndIsr",
                    key,
                    leader_epoch=sent_epoch,
                )
                self.drop(key)
            case Reaction.BACK_OFF:
                logger.info("%s: broker %d answers %s", key, self._leader_id, code)
                self._pause(key, f"the leader answered {code}")

    def _pause(self, key: TopicPartition, why: str) -> None:
        if key in self._followers:  # unless its disk failed, and it was dropped for that
            self._session.gone(key)
            if key not in self._last_pause:  # the first of a row
                self.report(EventKind.FETCH_FAILED, why, key, backoff_ms=self.backoff_ms)
            longer = 2 * self._last_pause.get(key, FIRST_PAUSE / 2)
            self._last_pause[key] = pause = min(longer, self._context.backoff)
            self._paused_until[key] = self._context.now() + pause

    # ---- the quota

    def _count_copied(self, key: TopicPartition, follower: Follower, size: int) -> None:
        quota = self._context.quota
        if quota is not None and follower.is_throttled(self._context.broker_id):
            quota.record(size)
            if self._is_held_back(key):
                self._hold_back(key)

    def _is_held_back(self, key: TopicPartition) -> bool:
        """Whether the partition is not to be fetched now: throttled, and not in sync."""
        quota, follower = self._context.quota, self._followers[key]
        return (
            quota is not None
            and follower.is_behind
            and follower.is_throttled(self._context.broker_id)
            and quota.is_exceeded()
        )

    def _hold_back(self, key: TopicPartition) -> None:
        """The others are fetched meanwhile."""
        assert self._context.quota is not None
        self._session.gone(key)
        self._paused_until[key] = self._context.now() + self._context.quota.wait()

    # ---- for people

    @property
    def backoff_ms(self) -> int:
        return int(self._context.backoff * 1000)

    def report(
        self, kind: EventKind, cause: str, key: TopicPartition | None = None, **details: Value
    ) -> None:
        """Record an event; without `key`, of all partitions followed here."""
        self._context.events.record(kind, cause, key, leader=self._leader_id, **details)

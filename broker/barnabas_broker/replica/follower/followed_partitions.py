"""The partitions that this broker follows at one leader: the requests, and what answers change.

Nothing here awaits. An error delays or removes one partition; the others are still fetched.
`ReplicaFetcher` sends the requests. `fetch_state` lists the states and decides the next one.
"""

import logging

from barnabas_common.errors import BarnabasError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, Value
from barnabas_common.messages.fetch import FetchedPartition, FetchRequest
from barnabas_common.messages.offsets import EpochEndOffset, EpochPartition
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, EpochEnd
from barnabas_broker.replica.follower.fetch_session_handler import FetchSessionHandler
from barnabas_broker.replica.follower.fetch_state import (
    NEXT_STATES,
    PartitionFetchState,
    ReplicaState,
    after_error,
    backed_off,
    delayed,
    moved_to,
)
from barnabas_broker.replica.follower.fetcher_context import FetcherContext
from barnabas_broker.replica.follower.follower import Follower
from barnabas_broker.replica.follower.leader_endpoint import LeaderRange
from barnabas_broker.replica.partition.partition import DamagedReplicaError, Partition

logger = logging.getLogger(__name__)

# How often a broker tries to tell a leader that it follows nothing there any more.
FAREWELLS = 10


class FollowedPartitions:
    """Each `Follower` has one state; `_in_state` finds the followers of a state without a scan."""

    def __init__(
        self, leader_id: int, context: FetcherContext, session: FetchSessionHandler
    ) -> None:
        self._leader_id = leader_id
        self._context = context
        self._session = session
        self._followers: dict[TopicPartition, Follower] = {}
        self._in_state: dict[ReplicaState, dict[TopicPartition, Follower]] = {
            state: {} for state in ReplicaState
        }
        self._farewells, self._said_farewell = 0, False

    def add(self, partition: Partition) -> None:
        """Follow the partition from the end of its log, after `Follower` has truncated it."""
        key = partition.topic_partition
        self.drop(key)
        context = self._context
        follower = Follower(partition, context.truncation, context.limits.partition_max_bytes)
        self._followers[key] = follower
        self._farewells, self._said_farewell = 0, False
        self._enter(key, follower)

    def leave(self, key: TopicPartition) -> None:
        """Stop following a partition that this broker no longer replicates.

        The next request tells the leader so. If it was the last partition, there is one more
        request for that purpose: the leader must not have to conclude it from silence.
        """
        if key in self._followers:
            self.drop(key)
            self._farewells = 0 if self._followers else FAREWELLS

    def drop(self, key: TopicPartition) -> None:
        """Stop following; an answer in flight is ignored."""
        follower = self._followers.pop(key, None)
        if follower is not None:
            del self._in_state[follower.state.state][key]
            self._session.gone(key)

    def _transition(
        self,
        key: TopicPartition,
        follower: Follower,
        following: PartitionFetchState,
        cause: str = "",
    ) -> None:
        """Change the state; the first error of a series is an event with the `cause`."""
        current = follower.state
        if following.state not in NEXT_STATES[current.state]:
            raise AssertionError(f"{key}: {following.state.name} after {current.state.name}")
        if current.backoff is None and following.backoff is not None:
            self.report(EventKind.FETCH_FAILED, cause, key, backoff_ms=self.backoff_ms)
        del self._in_state[current.state][key]
        follower.state = following
        self._enter(key, follower)

    def _enter(self, key: TopicPartition, follower: Follower) -> None:
        """The fetch session names the partitions in FETCHING only."""
        state = follower.state.state
        self._in_state[state][key] = follower
        if state is ReplicaState.FETCHING:
            self._session.moved(key)
        else:
            self._session.gone(key)

    # ---- what to ask for

    def has_work(self) -> bool:
        """Whether any partition is not delayed, or the leader must be told that none is left."""
        return len(self._in_state[ReplicaState.DELAYED]) < len(self._followers) or self.is_leaving

    @property
    def is_leaving(self) -> bool:
        """Whether the leader must still be told that nothing is followed there any more."""
        return self._farewells > 0

    def farewell(self, arrived: bool) -> None:
        """Note that a request was answered. If it failed, the farewell has one attempt less."""
        if not arrived:
            self._farewells = max(0, self._farewells - 1)
        elif self._said_farewell:
            self._farewells = 0

    def epoch_questions(self) -> dict[TopicPartition, EpochPartition]:
        """The latest epochs of the partitions that must be truncated before they are fetched."""
        return {
            key: EpochPartition(
                *key,
                leader_epoch=UNDEFINED if follower.latest_epoch is None else follower.latest_epoch,
                current_leader_epoch=follower.leader_epoch,
                topic_id=follower.topic_id,
            )
            for key, follower in self._in_state[ReplicaState.TRUNCATING].items()
        }

    def out_of_range(self) -> dict[TopicPartition, Follower]:
        """The followers whose fetch offset the leader does not have."""
        return dict(self._in_state[ReplicaState.OUT_OF_RANGE])

    def next_request(self) -> FetchRequest:
        """One fetch for all partitions in FETCHING.

        A position tells the leader that all below it is here, so it is flushed first if it is due:
        the flush after the append may have failed for lack of file descriptors.
        """
        self._said_farewell = self.is_leaving
        fetching = self._in_state[ReplicaState.FETCHING]
        keys = fetching if self._session.is_full else self._session.to_name()
        for key in list(keys):
            self._flush_if_due(key)
        positions = {key: fetching[key].position for key in keys if key in fetching}
        return self._session.request(positions, self.shortest_delay())

    def _flush_if_due(self, key: TopicPartition) -> None:
        follower = self._in_state[ReplicaState.FETCHING].get(key)
        if follower is None:
            return  # the flush of another partition failed, and with it their directory
        try:
            follower.partition.follower_log().flush_if_due()
        except BarnabasError as error:
            self._back_off(key, follower, f"what was fetched is not confirmed: {error}")

    def shortest_delay(self) -> float | None:
        """Seconds until the first delayed partition resumes; None without one."""
        delayed_ones = self._in_state[ReplicaState.DELAYED].values()
        if not delayed_ones:
            return None
        first = min(follower.state.delayed_until for follower in delayed_ones)
        return max(0.0, first - self._context.now())

    def resume_delayed(self) -> None:
        """Resume the partitions whose delay is over, unless they exceed their quota."""
        if self._in_state[ReplicaState.DELAYED]:
            now = self._context.now()
            for key, follower in list(self._in_state[ReplicaState.DELAYED].items()):
                state = follower.state
                if state.delayed_until <= now and not self._throttle(key, follower):
                    self._transition(key, follower, moved_to(state, state.resumes_in))

    # ---- one partition's answer

    def truncate(self, key: TopicPartition, asked: EpochPartition, answer: EpochEndOffset) -> None:
        """Apply the leader's answer about the end of an epoch."""
        follower = self._followers.get(key)
        if (
            follower is None
            or follower.state.state is not ReplicaState.TRUNCATING
            or follower.leader_epoch != asked.current_leader_epoch
        ):
            return  # the role changed while the request was in flight
        if answer.error_code:
            self._handle_error(key, follower, answer.error_code)
            return
        try:
            complete = follower.truncate(EpochEnd(answer.leader_epoch, answer.end_offset))
        except BarnabasError as error:
            self._failed(key, follower, error, "the log cannot be truncated")
            return
        state = ReplicaState.FETCHING if complete else ReplicaState.TRUNCATING
        self._transition(key, follower, moved_to(follower.state, state))

    def take(self, fetched: FetchedPartition) -> None:
        """Apply one partition of a fetch response: records, a divergence or an error."""
        key = TopicPartition(fetched.topic, fetched.partition)
        follower = self._in_state[ReplicaState.FETCHING].get(key)
        if follower is None or self._session.requested(key) is not follower.position:
            return  # the role changed while the request was in flight
        if fetched.error_code:
            self._handle_error(key, follower, fetched.error_code)
            return
        try:
            if follower.take(fetched):
                self._session.moved(key)
            if follower.state.backoff is not None:
                self._transition(key, follower, PartitionFetchState(ReplicaState.FETCHING))
            if fetched.records:
                self._count_copied(key, follower, len(fetched.records))
        except BarnabasError as error:
            self._failed(key, follower, error, "the fetched data was refused")
        except Exception:
            logger.exception("%s: fetching stops until the next LeaderAndIsr", key)
            why = "an unexpected error: this follower waits for LeaderAndIsr"
            self.report(EventKind.FETCH_FAILED, why, key)
            self.drop(key)

    def back_in_range(
        self, key: TopicPartition, follower: Follower, answer: LeaderRange | ErrorCode
    ) -> None:
        """Apply the leader's answer about the range of its log."""
        if self._followers.get(key) is not follower:
            return  # the role changed while the request was in flight
        if isinstance(answer, ErrorCode):
            self._handle_error(key, follower, answer)
            return
        try:
            moved = follower.back_in_range(answer)
        except BarnabasError as error:
            self._failed(key, follower, error, "the log cannot start where the leader's does")
            return
        if moved:
            self._transition(key, follower, moved_to(follower.state, ReplicaState.FETCHING))
        else:  # repeating the fetch immediately would give the same answer
            why = "the leader's log does not have the offset to fetch"
            self._back_off(key, follower, why)

    def _handle_error(self, key: TopicPartition, follower: Follower, error_code: int) -> None:
        following = after_error(
            follower.state, error_code, self._context.now(), self._context.backoff
        )
        cause = f"the leader answered {ErrorCode(error_code).name}"
        if following is not None:
            self._transition(key, follower, following, cause)
            return
        cause += ": this follower waits for LeaderAndIsr"
        self.report(EventKind.FETCH_FAILED, cause, key, leader_epoch=follower.leader_epoch)
        self.drop(key)

    def _failed(
        self, key: TopicPartition, follower: Follower, error: BarnabasError, what: str
    ) -> None:
        """Try again later. If the log is damaged, the next role decides what follows: a member of
        the ISR must leave it first."""
        if isinstance(error, DamagedReplicaError):
            self.drop(key)
            self._context.on_damage(follower.partition, error)
        else:
            self._back_off(key, follower, f"{what}: {error}")

    def _back_off(self, key: TopicPartition, follower: Follower, cause: str) -> None:
        if self._followers.get(key) is follower:  # unless its disk failed, which has dropped it
            following = backed_off(follower.state, self._context.now(), self._context.backoff)
            self._transition(key, follower, following, cause)

    # ---- the quota

    def _count_copied(self, key: TopicPartition, follower: Follower, size: int) -> None:
        quota = self._context.quota
        if quota is not None and follower.is_throttled(self._context.broker_id):
            quota.record(size)
            self._throttle(key, follower)

    def _throttle(self, key: TopicPartition, follower: Follower) -> bool:
        """Delay a throttled replica that is not in sync while the quota is exceeded (KIP-73)."""
        quota = self._context.quota
        if (
            quota is None
            or not follower.is_behind
            or not follower.is_throttled(self._context.broker_id)
            or not quota.is_exceeded()
        ):
            return False
        self._transition(key, follower, delayed(follower.state, self._context.now() + quota.wait()))
        return True

    # ---- events

    @property
    def backoff_ms(self) -> int:
        return int(self._context.backoff * 1000)

    def report(
        self, kind: EventKind, cause: str, key: TopicPartition | None = None, **details: Value
    ) -> None:
        """Record an event; without `key`, one for all partitions followed here."""
        self._context.events.record(kind, cause, key, leader=self._leader_id, **details)

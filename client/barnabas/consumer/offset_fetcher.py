"""Finds unknown positions, and validates known ones when a leader changes.

One loop, woken by an assignment, a reset or new metadata, begins rounds of requests. After an
unclean election the new leader may lack records fetched from the old one; the end of the old epoch
in its log shows it (KIP-320). Retriable failures are tried again as long as the consumer is open;
the consumer's next poll raises the others.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas_common.errors import (
    BarnabasError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.offsets import (
    EpochEndOffset,
    EpochPartition,
    ListedOffset,
    OffsetForLeaderEpochRequest,
)
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster, Leader
from barnabas.cluster.by_leader import ask_leaders, list_offsets
from barnabas.consumer.buffer import FetchBuffer
from barnabas.consumer.config import ConsumerConfig
from barnabas.consumer.fetcher import Fetcher
from barnabas.consumer.subscription_state import (
    SubscriptionState,
    TopicPartitionState,
    apply_epoch_end,
    is_of_deposed_leader,
)
from barnabas.group.offsets import OffsetAndMetadata

logger = logging.getLogger(__name__)

# One round of requests; a partition without an answer must not delay the others for longer.
_ROUND_SECONDS = 2.5
# A new topic has leaders by then. Without one, no records come to a partition meanwhile.
_LEADERLESS_SECONDS = 10.0
# A topic that the brokers have not known for this long was deleted: it is reported.
_DELETED_AFTER_SECONDS = 10.0


_States = Sequence[TopicPartitionState]
Requests = Callable[[_States], Coroutine[Any, Any, None]]
Wanted = Callable[[TopicPartitionState], bool]
FetchCommitted = Callable[
    [Sequence[TopicPartition], float], Awaitable[Mapping[TopicPartition, OffsetAndMetadata | None]]
]


def _any(_state: TopicPartitionState) -> bool:
    return True


class _Refusal(NamedTuple):
    """A partition does not exist; it is looked up again at `until`, or once it exists."""

    state: TopicPartitionState
    version: int
    until: float
    error: BarnabasError


class OffsetFetcher:
    """Resets and validates the positions of one consumer."""

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        positions: SubscriptionState,
        buffer: FetchBuffer,
        fetcher: Fetcher,
    ) -> None:
        self._timeout = config.default_api_timeout_ms / 1000
        self._isolation = config.isolation_code
        self._cluster = cluster
        self._positions = positions
        self._buffer = buffer
        self._fetcher = fetcher
        self._wakeup = asyncio.Event()
        self._settled = asyncio.Event()
        self._tasks = TaskScope("positions")
        self._missing_since: dict[str | TopicPartition, float] = {}
        # Set for a consumer in a group.
        self.fetch_committed: FetchCommitted | None = None
        self._refused: dict[TopicPartition, _Refusal] = {}
        self._last_failure: BarnabasError | None = None
        # The round of requests that each partition waits for.
        self._asked: dict[TopicPartitionState, _States] = {}
        self._closed = False

    def start(self) -> None:
        self._cluster.on_update(self.wake)
        self._tasks.spawn(self._run(), "positions")
        self.wake()

    async def close(self) -> None:
        self._closed = True
        await self._tasks.close()

    def wake(self) -> None:
        self._wakeup.set()

    async def begun(self) -> None:
        """As `settled`, but partitions without a leader are waited for only a while: the others can
        be read. Their positions are found later."""
        try:
            async with asyncio.timeout(min(self._timeout, _LEADERLESS_SECONDS)):
                await self._wait(_any)
        except TimeoutError:
            await self.settled(self._has_leader)

    def _has_leader(self, state: TopicPartitionState) -> bool:
        return self._cluster.metadata.leader(state.topic_partition) is not None

    async def settled(self, wanted: Wanted) -> None:
        """Wait until each of the `wanted` partitions has a position, or an error instead.

        Raises `RequestTimedOutError` with the last failure after `default_api_timeout_ms`.
        """
        try:
            async with asyncio.timeout(self._timeout):
                await self._wait(wanted)
        except TimeoutError:
            unknown = ", ".join(str(state.topic_partition) for state in self._unsettled(wanted))
            raise RequestTimedOutError(
                f"no position for {unknown} in {self._timeout:.1f} s; "
                f"last failure: {self._last_failure}"
            ) from self._last_failure

    async def _wait(self, wanted: Wanted) -> None:
        while any(
            not state.blocked and self.refusal(state) is None for state in self._unsettled(wanted)
        ):
            self._settled.clear()
            await self._settled.wait()

    def _unsettled(self, wanted: Wanted) -> _States:
        unsettled = [*self._positions.awaiting_committed(), *self._positions.unreset()]
        return [state for state in unsettled if wanted(state)]

    def refusal(self, state: TopicPartitionState) -> BarnabasError | None:
        """The error about a partition that did not exist a short time ago."""
        found = self._refused.get(state.topic_partition)
        if found is None or (found.state, found.version) != (state, state.version):
            return None
        exists = self._cluster.metadata.partition(state.topic_partition) is not None
        return None if exists or self._cluster.clock.monotonic() >= found.until else found.error

    async def _run(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            waiting = [s for s in self._positions.awaiting_committed() if not s.blocked]
            self._begin(self._start_from_committed, waiting)
            for states in self._unknown_by_topic():
                self._begin(self._look_up, states)
            self._begin(self._check, self._unchecked())
            self._report_deleted()
            self._settled.set()

    def _begin(self, requests: Requests, states: _States) -> None:
        """Send a round of requests about those of the partitions that wait for none.

        No round waits for another: a broker that stands still, and topics without leaders, take all
        the time there is.
        """
        free = [state for state in states if state not in self._asked]
        if free and not self._closed:
            self._asked.update(dict.fromkeys(free, free))
            self._tasks.spawn(self._attempt(requests, free), requests.__name__)

    async def _attempt(self, requests: Requests, states: _States) -> None:
        """Send one round of requests; after a retriable failure there is another round."""
        try:
            await requests(states)
        except BarnabasError as error:
            self._last_failure = error
            # Retriable in Kafka; here it comes after the client has waited for the topic.
            unknown = isinstance(error, UnknownTopicOrPartitionError)
            if unknown or not error.retriable:
                unanswered = [state for state in states if self._asked.get(state) is states]
                self._raise_later(unanswered, error)
            else:
                logger.warning("positions could not be found yet: %s", error)
        finally:
            for state in states:
                self._answered(state, states)

    def _answered(self, state: TopicPartitionState, round_of: _States) -> None:
        """The round has no question about this partition any more; it may need another round."""
        if self._asked.get(state) is round_of:
            del self._asked[state]
            self.wake()

    async def _start_from_committed(self, states: _States) -> None:
        assert self.fetch_committed is not None
        versions = {state.topic_partition: (state, state.version) for state in states}
        for tp, committed in (await self.fetch_committed(list(versions), _ROUND_SECONDS)).items():
            state, version = versions[tp]
            if state.version == version and state.awaits_committed:
                offset, epoch = (None, -1) if committed is None else (committed[0], committed[2])
                state.start_from(offset, epoch, self._positions.policy)
        self._fetcher.wake()
        self._buffer.wake()  # with the policy "none" a partition may have no position now

    def _unknown_by_topic(self) -> list[_States]:
        """The partitions to look up, by topic: a deleted one must not delay the others, nor those
        that do not exist the others of their topic."""
        topics: dict[tuple[str, bool], list[TopicPartitionState]] = {}
        for state in self._positions.unreset():
            if not state.blocked and self.refusal(state) is None:
                tp = state.topic_partition
                exists = self._cluster.metadata.partition(tp) is not None
                topics.setdefault((tp.topic, exists), []).append(state)
        return list(topics.values())

    async def _look_up(self, states: _States) -> None:
        versions = {state.topic_partition: (state, state.version) for state in states}
        wanted = {s.topic_partition: s.reset_to for s in states if s.reset_to is not None}

        def found(tp: TopicPartition, answer: ListedOffset) -> None:
            state, version = versions[tp]
            if state.version == version:
                state.seek(answer.offset)
                logger.info("%s: reading from offset %d", tp, answer.offset)
                self._fetcher.wake()
                self._settled.set()  # others may have no leader to ask
            self._answered(state, states)

        await list_offsets(
            self._cluster, wanted, self._isolation, _ROUND_SECONDS, found, is_round=True
        )

    def _unchecked(self) -> _States:
        """Partitions whose leader has another epoch than the last batch fetched."""
        found = []
        now = self._cluster.clock.monotonic()
        for tp, state in self._positions.states.items():
            leader = self._cluster.metadata.leader(tp)
            if leader is None or state.blocked or (state.deposed and now < state.not_before):
                continue
            if state.needs_check(leader.epoch):
                found.append(state)
        return found

    async def _check(self, unchecked: _States) -> None:
        # A position that was set since has no epoch to ask about.
        states = {s.topic_partition: (s, s.version) for s in unchecked if s.fetched_epoch >= 0}
        asked: dict[TopicPartition, EpochPartition] = {}

        def build(partitions: Sequence[tuple[TopicPartition, Leader]]) -> object:
            for tp, leader in partitions:
                asked[tp] = EpochPartition(*tp, states[tp][0].fetched_epoch, leader.epoch)
            return OffsetForLeaderEpochRequest(partitions=[asked[tp] for tp, _ in partitions])

        def found(tp: TopicPartition, answer: EpochEndOffset) -> None:
            state, version = states[tp]
            self._answered(state, unchecked)
            if state.version != version:
                return
            question = asked[tp]
            epoch = question.current_leader_epoch
            if is_of_deposed_leader(state, answer, epoch):
                self._ask_later(state)
                return
            # Meanwhile an older leader may have answered a fetch, with batches of a later epoch.
            if state.fetched_epoch == question.leader_epoch:
                error = apply_epoch_end(state, answer, epoch, self._positions.policy)
                if error is not None:
                    self._buffer.add_failure(state, error)
            self.wake()  # the position may have to be reset, or checked again
            self._fetcher.wake()

        await ask_leaders(self._cluster, states, build, _ROUND_SECONDS, found, is_round=True)

    def _ask_later(self, state: TopicPartitionState) -> None:
        """The leader was replaced: there may be news of another one after a pause."""
        state.deposed += 1
        self._cluster.request_refresh()
        self._fetcher.pause(state)
        pause = state.not_before - self._cluster.clock.monotonic()
        asyncio.get_running_loop().call_later(pause, self._ask_again, state, state.version)

    def _ask_again(self, state: TopicPartitionState, version: int) -> None:
        if state.version == version:
            state.not_before = 0.0
        self.wake()

    def _report_deleted(self) -> None:
        """Report topics and partitions that have been unknown for long to the application, each
        once in a while: one that logs the error and polls again must not get another at once."""
        now = self._cluster.clock.monotonic()
        missing_since: dict[str | TopicPartition, float] = {}
        for tp, state in self._positions.states.items():
            missing, message = self._missing(tp, state)
            if missing is None:
                continue
            since = missing_since.setdefault(missing, self._missing_since.get(missing, now))
            if now - since > _DELETED_AFTER_SECONDS and not state.blocked:
                missing_since[missing] = now
                self._buffer.add_failure(state, UnknownTopicOrPartitionError(message))
        self._missing_since = missing_since

    def _missing(
        self, tp: TopicPartition, state: TopicPartitionState
    ) -> tuple[str | TopicPartition | None, str]:
        """The topic or the partition that the brokers do not know, and a message about it. A
        partition without a known position is reported by the lookup."""
        metadata = self._cluster.metadata
        if metadata.errors.get(tp.topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return tp.topic, f"topic {tp.topic!r} no longer exists"
        if state.known and tp.topic in metadata.topics and metadata.partition(tp) is None:
            return tp, f"topic {tp.topic!r} has no partition {tp.partition}"
        return None, ""

    def _raise_later(self, states: _States, error: BarnabasError) -> None:
        """The next poll raises the error; after that the lookup is tried again, but not at once if
        the partition does not exist."""
        if isinstance(error, UnknownTopicOrPartitionError):
            until = self._cluster.clock.monotonic() + _DELETED_AFTER_SECONDS
            for state in states:
                tp = state.topic_partition
                self._refused[tp] = _Refusal(state, state.version, until, error)
            self._cluster.request_refresh()
            asyncio.get_running_loop().call_later(_DELETED_AFTER_SECONDS, self.wake)
        for state in states:
            if not state.blocked:
                self._buffer.add_failure(state, error)

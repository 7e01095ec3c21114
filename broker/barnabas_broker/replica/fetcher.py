"""Following one leader broker: a loop that fetches all partitions this broker follows there.

One request is out at a time; the next goes as soon as the answer is in the logs. Partitions fail
alone: one in trouble pauses or stops, the others go on. `Fetchers` owns one loop per leader.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.error_code import ErrorCode
from barnabas.errors import BarnabasError, TransportError
from barnabas.events import EventKind, EventLog, Value
from barnabas.messages.fetch import FetchedPartition, FetchRequest, FetchResponse
from barnabas.messages.offsets import EpochEndOffset, EpochPartition
from barnabas.runtime import Address, Channel, Network, PausePoint, Pauses, Service, TaskScope
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.epoch_lookup import EpochLookups
from barnabas_broker.replica.fetcher_session import FetcherSession, FetchLimits
from barnabas_broker.replica.follower import Follower, Reaction, reaction
from barnabas_broker.replica.leader_range import LeaderRange, ask_range
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.replication_quota import ReplicationQuota
from barnabas_broker.replica.truncation import EpochEnd, TruncationPolicy

logger = logging.getLogger(__name__)

# The first pause after a partition's error, in seconds; doubled up to `replica.fetch.backoff.ms`.
# After an election a follower often asks its new leader a few ms before that one knows it leads.
FIRST_PAUSE = 0.02


@dataclass(frozen=True)
class FetcherContext:
    """What all fetchers of a broker share; `backoff` and `timeout` in seconds."""

    network: Network
    now: Callable[[], float]
    broker_id: int
    broker_epoch: Callable[[], int]
    limits: FetchLimits
    backoff: float
    timeout: float
    truncation: TruncationPolicy = field(default_factory=TruncationPolicy)
    quota: ReplicationQuota | None = None
    pauses: Pauses | None = None
    events: EventLog = field(default_factory=EventLog)


class LeaderFetcher:
    """Fetches from one broker, from the first `add` until `close`."""

    def __init__(
        self,
        leader_id: int,
        address_of: Callable[[int], Address | None],
        context: FetcherContext,
    ) -> None:
        self.leader_id = leader_id
        self._address_of = address_of
        self._context = context
        self._pauses = context.pauses
        self._session = FetcherSession(context.limits, context.broker_id, context.broker_epoch)
        self._followers: dict[TopicPartition, Follower] = {}
        self._paused_until: dict[TopicPartition, float] = {}
        self._last_pause: dict[TopicPartition, float] = {}
        self._asking: dict[TopicPartition, None] = {}
        self._lookups = EpochLookups(context.broker_id, context.timeout)
        self._tasks = TaskScope(f"fetcher from {leader_id}")
        self._loop: asyncio.Task[None] | None = None
        self._in_call = self._interrupted = self._unreachable = False
        self._work = asyncio.Event()
        self._channel: Channel | None = None

    def add(self, partition: Partition) -> None:
        """Follow the partition from where its log allows; replaces what was known of it."""
        key = partition.topic_partition
        self._drop(key)
        self._followers[key] = follower = Follower(partition, self._context.truncation)
        self._lookups.note(key, follower)
        self._session.moved(key)
        self._work.set()
        if self._loop is None:
            self._loop = self._tasks.spawn(self._run(), "loop")
        elif self._in_call and not self._interrupted:
            # The request may be parked at the leader, and would keep the new one waiting.
            self._interrupted = True
            self._loop.cancel()

    def remove(self, key: TopicPartition) -> None:
        """Stop following; an answer still on its way is ignored."""
        self._drop(key)

    async def close(self) -> None:
        await self._tasks.close()
        if self._channel is not None:
            await self._channel.close()

    def _drop(self, key: TopicPartition) -> None:
        if self._followers.pop(key, None) is not None:
            self._paused_until.pop(key, None)
            self._last_pause.pop(key, None)
            self._asking.pop(key, None)
            self._lookups.drop(key)
            self._session.gone(key)

    # ---- the loop

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except Exception:
                logger.exception("fetching from broker %d failed", self.leader_id)
                self._session.reset()
                await self._rest(self._context.backoff)

    async def _round(self) -> None:
        """One request and what follows from its answer."""
        self._resume_paused()
        nothing_to_fetch = self._nothing_to_fetch()
        # The channel first: a new one begins a new session, which the request must belong to.
        channel = None if nothing_to_fetch else await self._connected()
        if channel is None:
            self._session.reset()
            await self._rest(self._until_next_pause_ends(nothing_to_fetch))
            return
        if self._lookups.pending and (questions := self._lookups.questions(self._paused_until)):
            await self._truncate_before_fetching(channel, questions)
            return
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_FETCH, self.leader_id)
        request = self._next_request()
        try:
            response = await self._call(channel, request)
        except TransportError as error:
            await self._leader_unreachable(error)
            return
        if response is None:
            self._session.reset()
            return
        if self._unreachable:
            self._unreachable = False
            self._report(EventKind.FETCH_RESUMED, "the leader answers again")
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_APPLY, self.leader_id)
        if response.error_code:
            await self._session_refused(ErrorCode(response.error_code))
            return
        for fetched in response.partitions:
            self._take(fetched)
        self._session.opened(response.session_id)

    def _nothing_to_fetch(self) -> bool:
        """Whether every partition is paused or asking for its range."""
        return len(self._followers) == len(self._paused_until) + len(self._asking)

    def _is_ready(self, key: TopicPartition) -> bool:
        """Whether a partition is to be fetched now."""
        return not (
            key in self._paused_until or key in self._asking or key in self._lookups.pending
        )

    def _next_request(self) -> FetchRequest:
        keys = list(self._followers) if self._session.is_full else self._session.to_name()
        positions = {}
        for key in keys:
            if self._is_ready(key):
                follower = self._followers[key]
                positions[key] = self._session.position(
                    key, follower.leader_epoch, follower.offsets
                )
        return self._session.request(positions, self._shortest_pause())

    def _shortest_pause(self) -> float | None:
        """Seconds until a paused partition may be asked for again; None without one."""
        if not self._paused_until:
            return None
        return max(0.0, min(self._paused_until.values()) - self._context.now())

    async def _call(self, channel: Channel, request: FetchRequest) -> FetchResponse | None:
        """The leader's answer; None if `add` interrupted the wait for it."""
        self._in_call = True
        try:
            response: FetchResponse = await channel.call(request, self._context.timeout)
            return response
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._interrupted and task is not None and task.uncancel() == 0:
                return None
            raise
        finally:
            self._in_call = self._interrupted = False

    async def _connected(self) -> Channel | None:
        """A channel to where the leader is now; None while nobody knows."""
        address = self._address_of(self.leader_id)
        if self._channel is not None and self._channel.address != address:
            await self._channel.close()
            self._channel = None
        if address is not None and self._channel is None:
            self._channel = self._context.network.connect(address, Service.REPLICA)
            self._session.reset()
        return self._channel

    async def _leader_unreachable(self, error: TransportError) -> None:
        level = logging.DEBUG if self._unreachable else logging.INFO
        logger.log(level, "cannot fetch from broker %d: %s", self.leader_id, error)
        if not self._unreachable:
            self._report(EventKind.FETCH_FAILED, str(error), backoff_ms=self._backoff_ms)
        self._unreachable = True
        self._session.reset()
        await self._rest(self._context.backoff)

    async def _session_refused(self, code: ErrorCode) -> None:
        """Open a new session at once; if even that is refused, after a pause."""
        was_full = self._session.is_full
        logger.info("broker %d refused a fetch: %s", self.leader_id, code.name)
        self._session.reset()
        if was_full:
            await self._rest(self._context.backoff)

    async def _rest(self, seconds: float | None) -> None:
        """Wait, but not beyond the arrival of new work."""
        self._work.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._work.wait()
        except TimeoutError:
            return

    def _resume_paused(self) -> None:
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

    def _until_next_pause_ends(self, nothing_to_fetch: bool) -> float | None:
        return self._shortest_pause() if nothing_to_fetch else self._context.backoff

    # ---- one partition's answer

    async def _truncate_before_fetching(
        self, channel: Channel, questions: dict[TopicPartition, EpochPartition]
    ) -> None:
        """One round of questions; who must ask again does so in the next (KIP-279)."""
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_TRUNCATION, self.leader_id)
        try:
            answers = await self._lookups.ask(channel, questions)
        except TransportError as error:
            await self._leader_unreachable(error)
            return
        for answer in answers:
            key = TopicPartition(answer.topic, answer.partition)
            self._truncate(key, questions[key], answer)

    def _truncate(self, key: TopicPartition, asked: EpochPartition, answer: EpochEndOffset) -> None:
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
        self._lookups.note(key, follower)
        self._session.moved(key)

    def _take(self, fetched: FetchedPartition) -> None:
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
            self._report(EventKind.FETCH_FAILED, why, key)
            self._drop(key)

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

    def _react(
        self, key: TopicPartition, follower: Follower, error_code: int, sent_epoch: int
    ) -> None:
        code = ErrorCode(error_code).name
        match reaction(error_code, sent_epoch, follower.leader_epoch):
            case Reaction.ASK_RANGE:
                self._asking[key] = None
                self._session.gone(key)
                self._tasks.spawn(self._back_in_range(key, follower), f"range of {key}")
            case Reaction.GIVE_UP:
                logger.info("%s: epoch %d is over, waiting for LeaderAndIsr", key, sent_epoch)
                self._report(
                    EventKind.FETCH_FAILED,
                    f"the leader answered {code}: this follower waits for LeaderAndIsr",
                    key,
                    leader_epoch=sent_epoch,
                )
                self._drop(key)
            case Reaction.BACK_OFF:
                logger.info("%s: broker %d answers %s", key, self.leader_id, code)
                self._pause(key, f"the leader answered {code}")

    def _pause(self, key: TopicPartition, why: str) -> None:
        if key in self._followers:  # unless its disk failed, and it was dropped for that
            self._session.gone(key)
            if key not in self._last_pause:  # the first of a row
                self._report(EventKind.FETCH_FAILED, why, key, backoff_ms=self._backoff_ms)
            longer = 2 * self._last_pause.get(key, FIRST_PAUSE / 2)
            self._last_pause[key] = pause = min(longer, self._context.backoff)
            self._paused_until[key] = self._context.now() + pause

    async def _back_in_range(self, key: TopicPartition, follower: Follower) -> None:
        """The leader does not have the offset asked for: find out what it has, and start there."""
        answer: LeaderRange | ErrorCode = ErrorCode.NETWORK_EXCEPTION
        if self._channel is not None:
            answer = await ask_range(
                self._channel,
                key,
                follower.leader_epoch,
                self._context.broker_id,
                self._context.timeout,
            )
        if self._followers.get(key) is not follower:
            return
        self._asking.pop(key, None)
        self._work.set()
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

    @property
    def _backoff_ms(self) -> int:
        return int(self._context.backoff * 1000)

    def _report(
        self, kind: EventKind, cause: str, key: TopicPartition | None = None, **details: Value
    ) -> None:
        """Without `key`: of all partitions followed here."""
        self._context.events.record(kind, cause, key, leader=self.leader_id, **details)

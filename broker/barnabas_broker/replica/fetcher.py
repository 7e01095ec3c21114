"""Following one leader broker: a loop that fetches all partitions this broker follows there.

One request is out at a time; the next goes as soon as the answer is in the logs. What answers do to
each partition is in `followed_partitions`. `Fetchers` owns one loop per leader.
"""

import asyncio
import logging
from collections.abc import Callable

from barnabas.error_code import ErrorCode
from barnabas.errors import TransportError
from barnabas.events import EventKind
from barnabas.messages.fetch import FetchRequest, FetchResponse
from barnabas.messages.offsets import EpochPartition
from barnabas.runtime import Address, Channel, PausePoint, Service, TaskScope
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.fetcher_context import FetcherContext
from barnabas_broker.replica.fetcher_session import FetcherSession
from barnabas_broker.replica.followed_partitions import FollowedPartitions
from barnabas_broker.replica.follower import Follower
from barnabas_broker.replica.leader_range import LeaderRange, ask_range
from barnabas_broker.replica.partition import Partition

logger = logging.getLogger(__name__)


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
        self._followed = FollowedPartitions(leader_id, context, self._session, self._out_of_range)
        self._tasks = TaskScope(f"fetcher from {leader_id}")
        self._loop: asyncio.Task[None] | None = None
        self._in_call = self._interrupted = self._unreachable = False
        self._work = asyncio.Event()
        self._channel: Channel | None = None

    def add(self, partition: Partition) -> None:
        """Follow the partition from where its log allows; replaces what was known of it."""
        self._followed.add(partition)
        self._work.set()
        if self._loop is None:
            self._loop = self._tasks.spawn(self._run(), "loop")
        elif self._in_call and not self._interrupted:
            # The request may be parked at the leader, and would keep the new one waiting.
            self._interrupted = True
            self._loop.cancel()

    def remove(self, key: TopicPartition) -> None:
        """Stop following; an answer still on its way is ignored."""
        self._followed.drop(key)

    async def close(self) -> None:
        await self._tasks.close()
        if self._channel is not None:
            await self._channel.close()

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
        self._followed.resume_paused()
        nothing_to_fetch = self._followed.nothing_to_fetch()
        # The channel first: a new one begins a new session, which the request must belong to.
        channel = None if nothing_to_fetch else await self._connected()
        if channel is None:
            self._session.reset()
            await self._rest(self._until_next_pause_ends(nothing_to_fetch))
            return
        if self._followed.lookups.pending and (questions := self._followed.questions()):
            await self._truncate_before_fetching(channel, questions)
            return
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_FETCH, self.leader_id)
        request = self._followed.next_request()
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
            self._followed.report(EventKind.FETCH_RESUMED, "the leader answers again")
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_APPLY, self.leader_id)
        if response.error_code:
            await self._session_refused(ErrorCode(response.error_code))
            return
        for fetched in response.partitions:
            self._followed.take(fetched)
        self._session.opened(response.session_id)

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
            self._followed.report(
                EventKind.FETCH_FAILED, str(error), backoff_ms=self._followed.backoff_ms
            )
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

    def _until_next_pause_ends(self, nothing_to_fetch: bool) -> float | None:
        return self._followed.shortest_pause() if nothing_to_fetch else self._context.backoff

    # ---- beside fetching

    async def _truncate_before_fetching(
        self, channel: Channel, questions: dict[TopicPartition, EpochPartition]
    ) -> None:
        """One round of questions; who must ask again does so in the next (KIP-279)."""
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_TRUNCATION, self.leader_id)
        try:
            answers = await self._followed.lookups.ask(channel, questions)
        except TransportError as error:
            await self._leader_unreachable(error)
            return
        for answer in answers:
            key = TopicPartition(answer.topic, answer.partition)
            self._followed.truncate(key, questions[key], answer)

    def _out_of_range(self, key: TopicPartition, follower: Follower) -> None:
        self._tasks.spawn(self._ask_range(key, follower), f"range of {key}")

    async def _ask_range(self, key: TopicPartition, follower: Follower) -> None:
        """The leader does not have the offset asked for: find out what it has."""
        answer: LeaderRange | ErrorCode = ErrorCode.NETWORK_EXCEPTION
        if self._channel is not None:
            answer = await ask_range(
                self._channel,
                key,
                follower.leader_epoch,
                self._context.broker_id,
                self._context.timeout,
            )
        self._followed.back_in_range(key, follower, answer)
        self._work.set()

"""Following one leader broker: a loop that fetches all partitions that this broker follows there.

One request is in flight at a time; the next one follows as soon as the answer is in the logs.
`FollowedPartitions` decides what to ask for and applies the answers. `ReplicaFetcherManager` has
one loop per leader.
"""

import asyncio
import logging
from collections.abc import Callable

from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.fetch import FetchRequest, FetchResponse
from barnabas_common.messages.offsets import EpochPartition
from barnabas_common.runtime import Address, Channel, PausePoint, Service, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.follower.fetch_session_handler import FetchSessionHandler
from barnabas_broker.replica.follower.fetcher_context import FetcherContext
from barnabas_broker.replica.follower.followed_partitions import FollowedPartitions
from barnabas_broker.replica.follower.follower import Follower
from barnabas_broker.replica.follower.leader_endpoint import fetch_epoch_ends, fetch_ranges
from barnabas_broker.replica.partition.partition import Partition

logger = logging.getLogger(__name__)


class ReplicaFetcher:
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
        self._session = FetchSessionHandler(context.limits, context.broker_id, context.broker_epoch)
        self._followed = FollowedPartitions(leader_id, context, self._session)
        self._tasks = TaskScope(f"fetcher from {leader_id}")
        self._loop: asyncio.Task[None] | None = None
        self._in_call = self._interrupted = self._unreachable = False
        self._work = asyncio.Event()
        self._channel: Channel | None = None

    def add(self, partition: Partition) -> None:
        """Follow the partition; this replaces its earlier state."""
        self._followed.add(partition)
        self._work.set()
        if self._loop is None:
            self._loop = self._tasks.spawn(self._run(), "loop")
        elif self._in_call and not self._interrupted:
            # The request may be parked at the leader, and would delay the new partition.
            self._interrupted = True
            self._loop.cancel()

    def remove(self, key: TopicPartition) -> None:
        """Stop following; an answer in flight is ignored."""
        self._followed.drop(key)

    def leave(self, key: TopicPartition) -> None:
        """Stop following a partition that this broker no longer replicates; tell the leader so."""
        self._followed.leave(key)
        if self._followed.is_leaving:
            self._work.set()

    async def close(self) -> None:
        """Stop the loop and close the connection."""
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
        """Send one request and apply its answer."""
        followed = self._followed
        followed.resume_delayed()
        has_work = followed.has_work()
        # Get the channel first: a new one starts a new session, to which the request must belong.
        channel = await self._connected() if has_work else None
        if channel is None:
            self._session.reset()
            await self._rest(self._context.backoff if has_work else followed.shortest_delay())
            return
        try:
            if questions := followed.epoch_questions():
                await self._truncate(channel, questions)
            elif out_of_range := followed.out_of_range():
                await self._find_ranges(channel, out_of_range)
            else:
                await self._fetch(channel)
        except TransportError as error:
            followed.farewell(arrived=False)
            if not self._unreachable:
                followed.report(EventKind.FETCH_FAILED, str(error), backoff_ms=followed.backoff_ms)
            self._unreachable = True
            self._session.reset()
            await self._rest(self._context.backoff)

    async def _fetch(self, channel: Channel) -> None:
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_FETCH, self.leader_id)
        response = await self._call(channel, self._followed.next_request())
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
        self._followed.farewell(arrived=True)

    async def _truncate(
        self, channel: Channel, questions: dict[TopicPartition, EpochPartition]
    ) -> None:
        """One round of lookups; a partition that needs another one stays in TRUNCATING."""
        if self._pauses is not None:
            await self._pauses.at(PausePoint.FOLLOWER_BEFORE_TRUNCATION, self.leader_id)
        context = self._context
        for answer in await fetch_epoch_ends(
            channel, context.broker_id, questions.values(), context.timeout
        ):
            key = TopicPartition(answer.topic, answer.partition)
            self._followed.truncate(key, questions[key], answer)

    async def _find_ranges(
        self, channel: Channel, out_of_range: dict[TopicPartition, Follower]
    ) -> None:
        followed = {
            key: (follower.leader_epoch, follower.topic_id)
            for key, follower in out_of_range.items()
        }
        context = self._context
        ranges = await fetch_ranges(channel, context.broker_id, followed, context.timeout)
        for key, answer in ranges.items():
            self._followed.back_in_range(key, out_of_range[key], answer)

    async def _call(self, channel: Channel, request: FetchRequest) -> FetchResponse | None:
        """The leader's answer; None if `add` interrupted the wait."""
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
        """A channel to the leader's present address; None while the address is unknown."""
        address = self._address_of(self.leader_id)
        if self._channel is not None and self._channel.address != address:
            await self._channel.close()
            self._channel = None
        if address is not None and self._channel is None:
            self._channel = self._context.network.connect(address, Service.REPLICA)
            self._session.reset()
        return self._channel

    async def _session_refused(self, code: ErrorCode) -> None:
        """Open a new session immediately; if that was refused too, after a backoff."""
        was_full = self._session.is_full
        logger.info("broker %d refused a fetch: %s", self.leader_id, code.name)
        self._session.reset()
        if was_full:
            await self._rest(self._context.backoff)

    async def _rest(self, seconds: float | None) -> None:
        """Wait `seconds`, or until a partition is added."""
        self._work.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._work.wait()
        except TimeoutError:
            return

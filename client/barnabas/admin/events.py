"""Reading the events of all brokers: the recorded ones, and new ones as they occur."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from barnabas_common.errors import BarnabasError, ClosedError
from barnabas_common.events import Event
from barnabas_common.events.wire import events_of
from barnabas_common.messages.events import DescribeEventsRequest, DescribeEventsResponse
from barnabas_common.runtime import Service, TaskScope

from barnabas.cluster import Cluster

# Seconds that the network may take on top of the time the broker is given.
NETWORK_MARGIN = 5.0
# How long a broker may hold a request for new events; one that stopped is noticed sooner.
PATIENCE_MS = 5_000
# An event is held back for this many seconds, so that an older one of another broker can arrive.
HOLD_BACK = 0.3
RETRY_PAUSE = 0.3
LOOK_FOR_BROKERS_EVERY = 1.0
FROM_NOW_ON = -1


@dataclass(frozen=True)
class BrokerEvents:
    """The events of a broker's present incarnation, oldest first, or the error of the request.

    `forgotten_ms` is the wall clock time of the newest change of state that the broker has dropped,
    0 if it has dropped none. `life` names the incarnation, `until` the last event.
    """

    broker_id: int
    events: list[Event] = field(default_factory=list)
    forgotten_ms: int = 0
    life: int = 0
    until: int = 0
    error: BarnabasError | None = None


@dataclass(frozen=True)
class Interruption:
    """A gap or a pause in a broker's events: `what` is a sentence about it."""

    broker_id: int
    time_ms: int
    what: str
    missed: int = 0


async def recorded_events(cluster: Cluster, broker_id: int, topics: Sequence[str]) -> BrokerEvents:
    """All recorded events of one broker, page by page."""
    events: list[Event] = []
    request = DescribeEventsRequest(topics=list(topics))
    end = None
    while True:
        try:
            response = await _ask(cluster, broker_id, request)
            if end is None:
                end = await _end(cluster, broker_id)
        except BarnabasError as error:
            return BrokerEvents(broker_id, error=error)
        events += events_of(response)
        request.life, request.after = response.life, response.until
        if response.until >= end or not response.events:
            return BrokerEvents(
                broker_id, events, response.forgotten_ms, response.life, response.until
            )


async def _end(cluster: Cluster, broker_id: int) -> int:
    request = DescribeEventsRequest(after=FROM_NOW_ON)
    return (await _ask(cluster, broker_id, request)).until


async def _ask(
    cluster: Cluster, broker_id: int, request: DescribeEventsRequest
) -> DescribeEventsResponse:
    channel = cluster.channel(broker_id, Service.ADMIN)
    timeout = request.max_wait_ms / 1000 + NETWORK_MARGIN
    answer: DescribeEventsResponse = await channel.call(request, timeout)
    return answer


class EventStream:
    """The events of all brokers as they occur, ordered by their clocks; used with `async with`.

    Brokers may stop and restart meanwhile. The first events of a restarted broker may come late,
    because it answers only once it serves. Without `from_beginning`, a broker that does not answer
    at first is read from its first answer on, or from its start if that is later. A reader that is
    too slow gets an `Interruption` in place of the events that a broker has dropped. Ends when the
    admin client is closed.
    """

    def __init__(self, cluster: Cluster, topics: Sequence[str], from_beginning: bool) -> None:
        self._cluster = cluster
        self._topics = list(topics)
        self._from_beginning = from_beginning
        self._began_ms = cluster.clock.wall_ms()
        self._tasks = TaskScope("events")
        self._news: asyncio.Queue[Event | Interruption | None] = asyncio.Queue(maxsize=10_000)
        self._followed: dict[int, None] = {}
        self._held: list[tuple[tuple[int, int, int], float, Event | Interruption]] = []
        self._count = 0
        self._ended = False

    async def __aenter__(self) -> Self:
        known = sorted(self._cluster.metadata.brokers)
        answers = await asyncio.gather(*(self._position_of(broker_id) for broker_id in known))
        for answer in answers:
            for event in answer.events:
                self._hold(event)
            self._follow(answer.broker_id, answer)
        self._tasks.spawn(self._look_for_brokers(), "brokers")
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._tasks.close()

    async def _position_of(self, broker_id: int) -> BrokerEvents:
        if self._from_beginning:
            return await recorded_events(self._cluster, broker_id, self._topics)
        try:
            request = DescribeEventsRequest(after=FROM_NOW_ON)
            now = await _ask(self._cluster, broker_id, request)
        except BarnabasError as error:
            return BrokerEvents(broker_id, error=error)
        return BrokerEvents(broker_id, life=now.life, until=now.until)

    # ---- reading

    def __aiter__(self) -> AsyncIterator[Event | Interruption]:
        return self

    async def __anext__(self) -> Event | Interruption:
        while True:
            if self._ended:
                raise StopAsyncIteration
            now = self._cluster.clock.monotonic()
            if self._held and self._held[0][1] <= now:
                return heapq.heappop(self._held)[2]
            patience = self._held[0][1] - now if self._held else None
            try:
                async with asyncio.timeout(patience):
                    news = await self._news.get()
            except TimeoutError:
                continue
            if news is None:
                self._ended = True
                continue
            self._hold(news, HOLD_BACK)

    def _hold(self, news: Event | Interruption, seconds: float = 0.0) -> None:
        self._count += 1
        order = (news.time_ms, news.broker_id, self._count)
        heapq.heappush(self._held, (order, self._cluster.clock.monotonic() + seconds, news))

    # ---- following

    async def _look_for_brokers(self) -> None:
        while True:
            for broker_id in sorted(self._cluster.metadata.brokers):
                self._follow(broker_id, BrokerEvents(broker_id))
            self._cluster.request_refresh()
            await asyncio.sleep(LOOK_FOR_BROKERS_EVERY)

    def _follow(self, broker_id: int, start: BrokerEvents) -> None:
        if broker_id not in self._followed:
            self._followed[broker_id] = None
            self._tasks.spawn(self._read(broker_id, start), f"of broker {broker_id}")

    async def _read(self, broker_id: int, start: BrokerEvents) -> None:
        place = DescribeEventsRequest(
            start.life, start.until, max_wait_ms=PATIENCE_MS, topics=self._topics
        )
        answers = True
        asked = self._from_beginning or start.life > 0
        while True:
            try:
                if not asked:
                    await self._skip_history(broker_id, place)
                    asked = True
                response = await _ask(self._cluster, broker_id, place)
            except ClosedError:
                await self._news.put(None)
                return
            except BarnabasError as error:
                if answers:
                    await self._interrupt(broker_id, f"does not answer: {error}")
                answers = False
                self._cluster.note_failure(broker_id)
                self._cluster.request_refresh()
                await asyncio.sleep(RETRY_PAUSE)
                continue
            if not answers:
                await self._interrupt(broker_id, "answers again")
            answers = True
            if response.missed:
                what = f"had already dropped {response.missed} events when they were requested"
                await self._interrupt(broker_id, what, response.missed)
            place.life, place.after = response.life, response.until
            for event in events_of(response):
                await self._news.put(event)

    async def _skip_history(self, broker_id: int, place: DescribeEventsRequest) -> None:
        """Begin with what is new at a broker that could not be asked when the stream began.

        All is new if the broker has been started since; `life` is the wall clock time of its start.
        """
        now = await _ask(self._cluster, broker_id, DescribeEventsRequest(after=FROM_NOW_ON))
        if now.life < self._began_ms:
            place.life, place.after = now.life, now.until

    async def _interrupt(self, broker_id: int, what: str, missed: int = 0) -> None:
        now = self._cluster.clock.wall_ms()
        await self._news.put(Interruption(broker_id, now, f"broker {broker_id} {what}", missed))

"""A broker's latest events, in a bounded ring.

There are two rings with one sequence: changes of state, and moves of offsets. Offsets move all the
time, and must not displace the cause of a leader change of an hour ago.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from barnabas_common.events.event import LOG_LEVELS, Event, EventKind, Value
from barnabas_common.events.event_text import in_words
from barnabas_common.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

CAPACITY = 10_000
MOVES_CAPACITY = 2_000
MOST_CHARACTERS = 1_000
"""Of a text in an event, which may be a client's: a reason, a group id."""
MOST_ITEMS = 1_000
MOVES = frozenset({EventKind.OFFSETS_MOVED})


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Events of one incarnation of a broker, oldest first.

    `life` identifies the incarnation. The next request starts after sequence `until`. `missed`
    counts the events in between that the ring had already dropped. `forgotten_ms` is the wall clock
    of the newest change of state that was ever dropped, 0 if there is none.
    """

    life: int
    until: int
    missed: int
    forgotten_ms: int
    events: list[Event]


class EventLog:
    """The latest events of one incarnation of a broker; the oldest are dropped first.

    `wall_ms` returns the events' times. Events are recorded on the event loop; recording never
    waits and never fails.
    """

    def __init__(
        self,
        broker_id: int = -1,
        wall_ms: Callable[[], int] = lambda: 0,
        capacity: int = CAPACITY,
        moves_capacity: int = MOVES_CAPACITY,
    ) -> None:
        self._broker_id = broker_id
        self._wall_ms = wall_ms
        self._changes: deque[Event] = deque(maxlen=capacity)
        self._moves: deque[Event] = deque(maxlen=moves_capacity)
        self._last = 0
        self._forgotten_ms = 0
        self._readers: dict[asyncio.Future[None], None] = {}
        self._closed = False
        self.life = wall_ms()

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest event, 0 if there has been none."""
        return self._last

    def record(
        self,
        kind: EventKind,
        cause: str,
        topic_partition: TopicPartition | None = None,
        **details: Value,
    ) -> None:
        """Record a change of state and its cause; also write it to the process's log.

        One call makes both the log line and the event, so that they cannot differ. Long texts and
        lists are cut: clients can make them as long as a request.
        """
        self._last += 1
        plain = {name: _plain(value) for name, value in details.items()}
        if topic_partition is not None:
            topic_partition = topic_partition._replace(topic=_cut(topic_partition.topic))
        event = Event(
            self._last, self._wall_ms(), self._broker_id, kind, _cut(cause), topic_partition, plain
        )
        if kind in MOVES:
            self._moves.append(event)
        else:
            if len(self._changes) == self._changes.maxlen:
                self._forgotten_ms = self._changes[0].time_ms
            self._changes.append(event)
        level = LOG_LEVELS[kind]
        if level and logger.isEnabledFor(level):
            logger.log(level, "%s", in_words(event))
        if self._readers:
            self._wake()

    def since(self, sequence: int) -> list[Event]:
        """The recorded events after `sequence`, oldest first.

        Gaps in their sequences show that events were dropped.
        """
        found = [*_after(self._changes, sequence), *_after(self._moves, sequence)]
        found.sort(key=lambda event: event.sequence)
        return found

    def excerpt(self, sequence: int, max_events: int) -> Excerpt:
        """The first `max_events` events after `sequence`, with their place in the sequence."""
        found = self.since(sequence)
        events = found[:max_events]
        until = events[-1].sequence if len(events) < len(found) else self._last
        missed = until - min(sequence, until) - len(events)
        return Excerpt(self.life, until, missed, self._forgotten_ms, events)

    # ---- readers that wait

    async def wait_beyond(self, sequence: int, seconds: float) -> bool:
        """Wait for an event after `sequence`; False if none comes in time, or after `close`."""
        if self._last > sequence:
            return True
        if self._closed or seconds <= 0:
            return False
        reader: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers[reader] = None
        try:
            async with asyncio.timeout(seconds):
                await reader
        except TimeoutError:
            pass
        finally:
            self._readers.pop(reader, None)  # already removed if an event came at the same moment
        return self._last > sequence

    def close(self) -> None:
        """Wake all readers that wait; no reader waits from now on."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        readers, self._readers = self._readers, {}
        for reader in readers:
            if not reader.done():
                reader.set_result(None)


def _after(ring: deque[Event], sequence: int) -> list[Event]:
    """The events of a ring after `sequence`, oldest first.

    The search begins at the newest event, so that an up-to-date reader costs nothing.
    """
    found = []
    for event in reversed(ring):
        if event.sequence <= sequence:
            break
        found.append(event)
    found.reverse()
    return found


def _plain(value: Value) -> Value:
    """The value as JSON would return it. A list is copied, because the caller may change it."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value[:MOST_ITEMS]]
    return value


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."

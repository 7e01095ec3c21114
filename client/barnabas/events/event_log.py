"""A broker's latest events, in a bounded ring."""

from collections import deque
from collections.abc import Callable

from barnabas.events.event import Event, EventKind, Value
from barnabas.topic_partition import TopicPartition

CAPACITY = 10_000


class EventLog:
    """What one life of a broker has to tell; the oldest events are forgotten first.

    `wall_ms` is the clock that stamps them. Recording never waits and never fails.
    """

    def __init__(
        self,
        broker_id: int = -1,
        wall_ms: Callable[[], int] = lambda: 0,
        capacity: int = CAPACITY,
    ) -> None:
        self._broker_id = broker_id
        self._wall_ms = wall_ms
        self._ring: deque[Event] = deque(maxlen=capacity)
        self._last = 0

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest event; 0 when there was none."""
        return self._last

    def record(
        self,
        kind: EventKind,
        cause: str,
        topic_partition: TopicPartition | None = None,
        **details: Value,
    ) -> None:
        """Remember that something changed, and why."""
        self._last += 1
        now = self._wall_ms()
        plain = {name: _plain(value) for name, value in details.items()}
        self._ring.append(
            Event(self._last, now, self._broker_id, kind, cause, topic_partition, plain)
        )

    def since(self, sequence: int) -> list[Event]:
        """The remembered events after `sequence`, oldest first.

        A reader has missed some if the first of them is not `sequence + 1`.
        """
        missing = self._last - max(sequence, self._last - len(self._ring))
        return [self._ring[index - missing] for index in range(missing)]


def _plain(value: Value) -> Value:
    """As it will look after a way over the wire; also, the recorder may change its own list."""
    return list(value) if isinstance(value, list | tuple) else value

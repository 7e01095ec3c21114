"""DescribeEvents: the events of the asked broker, with their causes (service Admin).

A reader requests the events after the last one it has, and may wait for them: repeated, this is a
stream. `life` and `after` name the place; a broker that has restarted starts a new sequence.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class DescribeEventsRequest:
    """The events after sequence `after` of incarnation `life`; all recorded ones with `life` 0;
    with `after` -1 none, only where they end now.

    Answered immediately if there are any, else after `max_wait_ms`. With `topics`, only events of
    these topics and of no single topic.
    """

    life: int = 0
    after: int = 0
    max_events: int = 1000
    max_wait_ms: int = 0
    topics: list[str] = field(default_factory=list)


@dataclass(slots=True)
class EventRecord:
    """One event; `partition` -1: of no partition. `details` is a JSON object."""

    sequence: int
    time_ms: int
    kind: str
    cause: str
    topic: str = ""
    partition: int = -1
    details: str = "{}"


@dataclass(slots=True)
class DescribeEventsResponse:
    """Oldest first. Ask next with this `life` and `until` as `after`.

    `missed`: events between the two requests that were already dropped. `forgotten_ms`: wall clock
    of the newest change of state that this incarnation has dropped, 0: none.
    """

    broker_id: int
    life: int = 0
    until: int = 0
    missed: int = 0
    forgotten_ms: int = 0
    events: list[EventRecord] = field(default_factory=list)

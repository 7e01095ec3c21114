"""DescribeEvents: what the asked broker has seen happen, and why (service Admin).

A reader asks for what came after the last it has, and may wait for it: asked again and again this
is a stream. `life` and `after` name the place; a broker that restarted meanwhile begins anew.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class DescribeEventsRequest:
    """The events after sequence `after` of life `life`; all that are remembered with `life` 0;
    none, but where they end now, with `after` -1.

    Answered at once when there are any; else after `max_wait_ms`. With `topics`, only events of
    these topics and those that concern no one topic.
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

    `missed`: events between the two requests that were already forgotten. `forgotten_ms`: wall
    clock of the newest change of state this broker has forgotten, 0: it remembers all of its life.
    """

    broker_id: int
    life: int = 0
    until: int = 0
    missed: int = 0
    forgotten_ms: int = 0
    events: list[EventRecord] = field(default_factory=list)

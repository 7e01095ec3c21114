"""DescribeEvents: the events of the broker that answers, with their causes (service Admin).

A reader requests the events after the last one that it has, and may wait for them; repeated
requests make a stream. `life` and `after` name the place, because a broker that has restarted
begins a new sequence.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class DescribeEventsRequest:
    """Requests the events after sequence `after` of incarnation `life`.

    A `life` of 0 requests all recorded events. An `after` of -1 requests no events, only the
    sequence of the newest one. The response is sent immediately if there are events, otherwise
    after at most `max_wait_ms`. If `topics` is not empty, events of other topics are left out.
    """

    life: int = 0
    after: int = 0
    max_events: int = 1000
    max_wait_ms: int = 0
    topics: list[str] = field(default_factory=list)


@dataclass(slots=True)
class EventRecord:
    """One event. `partition` is -1 if it is about no partition; `details` is a JSON object."""

    sequence: int
    time_ms: int
    kind: str
    cause: str
    topic: str = ""
    partition: int = -1
    details: str = "{}"


@dataclass(slots=True)
class DescribeEventsResponse:
    """The events, oldest first. The next request has this `life`, and `until` as `after`.

    `missed` counts the events between the two requests that were already dropped. `forgotten_ms` is
    the wall clock of the newest change of state that this incarnation has dropped, 0 if there is
    none.
    """

    broker_id: int
    life: int = 0
    until: int = 0
    missed: int = 0
    forgotten_ms: int = 0
    events: list[EventRecord] = field(default_factory=list)

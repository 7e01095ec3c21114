"""The ring of events: order, what a late reader gets, what is forgotten."""

from barnabas.events import EventKind, EventLog
from barnabas.topic_partition import TopicPartition


def test_events_carry_who_when_what_and_why():
    events = EventLog(broker_id=3, wall_ms=lambda: 1_700)
    events.record(EventKind.ISR_CHANGED, "broker 2 is slow", TopicPartition("t", 0), isr=[1, 3])
    (event,) = events.since(0)
    assert (event.sequence, event.time_ms, event.broker_id) == (1, 1_700, 3)
    assert event.cause == "broker 2 is slow" and event.details == {"isr": [1, 3]}


def test_a_reader_gets_what_came_after_its_last():
    events = EventLog()
    for number in range(5):
        events.record(EventKind.BROKER_STARTED, str(number))
    assert [event.cause for event in events.since(2)] == ["2", "3", "4"]
    assert events.since(5) == []
    assert events.since(9) == []


def test_the_oldest_are_forgotten_and_the_reader_can_tell():
    events = EventLog(capacity=3)
    for number in range(5):
        events.record(EventKind.BROKER_STARTED, str(number))
    assert [event.sequence for event in events.since(0)] == [3, 4, 5]
    assert [event.sequence for event in events.since(4)] == [5]

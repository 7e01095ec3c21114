"""The ring of events: its order, what a late reader gets, and what is dropped."""

import asyncio

import pytest
from barnabas_broker.api.describe_events import is_wanted
from barnabas_common.events import Event, EventKind, EventLog
from barnabas_common.events.wire import events_of, to_record
from barnabas_common.messages.events import DescribeEventsResponse, EventRecord
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run


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


def test_moves_of_offsets_push_out_no_change_of_state():
    events = EventLog(capacity=5, moves_capacity=2)
    events.record(EventKind.BECAME_LEADER, "broker 1 died")
    for _ in range(9):
        events.record(EventKind.OFFSETS_MOVED, "records came")
    assert [event.sequence for event in events.since(0)] == [1, 9, 10]


def test_an_excerpt_tells_what_its_reader_has_missed_and_where_to_go_on():
    events = EventLog(wall_ms=lambda: 5, capacity=3)
    for number in range(5):
        events.record(EventKind.BROKER_STARTED, str(number))
    first = events.excerpt(1, max_events=2)
    assert [event.sequence for event in first.events] == [3, 4]
    assert (first.missed, first.until, first.forgotten_ms) == (1, 4, 5)
    rest = events.excerpt(first.until, max_events=2)
    assert ([event.sequence for event in rest.events], rest.missed, rest.until) == ([5], 0, 5)


def test_nothing_is_forgotten_until_the_ring_is_full():
    events = EventLog(wall_ms=lambda: 5, capacity=3)
    for number in range(3):
        events.record(EventKind.BROKER_STARTED, str(number))
    assert events.excerpt(0, max_events=9).forgotten_ms == 0


def test_two_readers_wait_for_the_same_event():
    async def story():
        events = EventLog()
        readers = [asyncio.ensure_future(events.wait_beyond(0, 60.0)) for _ in range(2)]
        await asyncio.sleep(1)
        assert not any(reader.done() for reader in readers)
        events.record(EventKind.BROKER_STARTED, "")
        return [await reader for reader in readers], asyncio.get_running_loop().time()

    assert run(story()) == ([True, True], 1.0)


def test_a_reader_waits_no_longer_than_it_wants_to_nor_beyond_the_end():
    async def story():
        events = EventLog()
        waited = [await events.wait_beyond(0, 2.0)]
        asyncio.get_running_loop().call_later(1.0, events.close)
        waited.append(await events.wait_beyond(0, 60.0))
        return waited, asyncio.get_running_loop().time()

    assert run(story()) == ([False, False], 3.0)


def test_an_event_at_the_moment_a_readers_patience_ends_is_no_error():
    async def story():
        events, loop = EventLog(), asyncio.get_running_loop()
        reader = asyncio.ensure_future(events.wait_beyond(0, 2.0))
        loop.call_later(1.0, lambda: loop.call_at(2.0, record_once_given_up, events, reader))
        return await reader

    def record_once_given_up(events, reader):
        """Record an event when the reader's wait is over, but the reader has not run yet."""
        if all(waiting.done() for waiting in events._readers):
            events.record(EventKind.BROKER_STARTED, "")
        elif not reader.done():
            asyncio.get_running_loop().call_soon(record_once_given_up, events, reader)

    for seed in range(8):  # the order of callbacks that are due at the same time is random
        assert run(story(), seed=seed) is True


def test_an_event_survives_the_wire():
    events = EventLog(broker_id=3, wall_ms=lambda: 1_700)
    events.record(EventKind.ISR_CHANGED, "broker 2 is slow", TopicPartition("t", 0), isr=(1, 3))
    events.record(EventKind.BROKER_GONE, "broker 2 died", broker=2)
    records = [to_record(event) for event in events.since(0)]
    assert events_of(DescribeEventsResponse(3, events=records)) == events.since(0)


def test_a_kind_of_a_later_version_is_left_out():
    record = EventRecord(1, 1, "became-quorum-member", "who knows")
    assert events_of(DescribeEventsResponse(3, events=[record])) == []


def test_what_a_client_says_takes_little_room_and_one_line(caplog: pytest.LogCaptureFixture):
    """A reason of 60 MB filled the ring, and no answer of DescribeEvents could carry it."""
    caplog.set_level("INFO")
    events = EventLog()
    long = "x" * 60_000
    events.record(
        EventKind.GROUP_MEMBER_JOINED,
        f"its reason: {long}",
        TopicPartition(long, 0),
        group="g\nERROR broker 9 lost\x1b[31m",
        members=[long] * 3,
        target=list(range(60_000)),
    )
    (event,) = events.since(0)
    assert event.topic_partition is not None
    texts = [event.cause, event.topic_partition.topic, *event.details["members"]]
    assert {len(text) for text in texts} == {1_003}
    assert event.details["target"] == list(range(1_000))
    assert event.details["group"] == "g\nERROR broker 9 lost\x1b[31m", "as the client named it"
    events.record(EventKind.GROUP_GONE, "a\r\nb", group="g\nERROR\x1b[31m")
    assert r"group g\nERROR\x1b[31m group-gone: a\r\nb" in caplog.messages[-1]
    assert "\n" not in caplog.text.rstrip()[-80:]


@pytest.mark.parametrize(
    ("event", "is_asked_for"),
    [
        (Event(1, 1, 1, EventKind.LEADER_ELECTED, "", TopicPartition("a", 0)), True),
        (Event(1, 1, 1, EventKind.LEADER_ELECTED, "", TopicPartition("b", 0)), False),
        (Event(1, 1, 1, EventKind.TOPIC_DELETED, "", details={"topic": "a"}), True),
        (Event(1, 1, 1, EventKind.TOPIC_DELETED, "", details={"topic": "b"}), False),
        (Event(1, 1, 1, EventKind.BROKER_GONE, "", details={"broker": 2}), True),
        (Event(1, 1, 1, EventKind.GROUP_STABLE, "", details={"group": "g"}), False),
        (
            Event(1, 1, 1, EventKind.TRANSACTION_FENCED, "", details={"transactional_id": "t"}),
            False,
        ),
    ],
)
def test_of_topics_and_of_brokers_events_are_asked_for(event: Event, is_asked_for: bool) -> None:
    assert is_wanted(event, frozenset({"a"})) == is_asked_for
    assert is_wanted(event, frozenset())

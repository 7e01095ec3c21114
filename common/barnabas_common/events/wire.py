"""Events to and from their messages."""

import json
from typing import cast

from barnabas_common.events.event import Event, EventKind
from barnabas_common.messages.events import DescribeEventsResponse, EventRecord
from barnabas_common.topic_partition import TopicPartition


def to_record(event: Event) -> EventRecord:
    """The event without its broker's id, which the response has once."""
    topic, partition = event.topic_partition or ("", -1)
    details = json.dumps(event.details)
    return EventRecord(
        event.sequence, event.time_ms, event.kind, event.cause, topic, partition, details
    )


def events_of(response: DescribeEventsResponse) -> list[Event]:
    """The events of an answer; a kind that this version does not know is left out."""
    known = set(EventKind)
    return [
        Event(
            record.sequence,
            record.time_ms,
            response.broker_id,
            EventKind(record.kind),
            record.cause,
            TopicPartition(record.topic, record.partition) if record.topic else None,
            cast(dict[str, object], json.loads(record.details)),  # type: ignore[arg-type]
        )
        for record in response.events
        if record.kind in known
    ]

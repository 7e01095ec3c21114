"""Events as they travel, and back."""

import json
from typing import cast

from barnabas.events.event import Event, EventKind
from barnabas.messages.events import DescribeEventsResponse, EventRecord
from barnabas.topic_partition import TopicPartition


def to_record(event: Event) -> EventRecord:
    """The event without its broker's id, which the response names once."""
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

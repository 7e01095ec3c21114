"""Converts events to their messages and back."""

import json
from typing import cast

from barnabas_common.events.event import Event, EventKind
from barnabas_common.messages.events import DescribeEventsResponse, EventRecord
from barnabas_common.topic_partition import TopicPartition


def to_record(event: Event) -> EventRecord:
    """The message of an event. The broker's id is missing, because the response has it once."""
    topic, partition = event.topic_partition or ("", -1)
    details = json.dumps(event.details)
    return EventRecord(
        event.sequence, event.time_ms, event.kind, event.cause, topic, partition, details
    )


def events_of(response: DescribeEventsResponse) -> list[Event]:
    """The events of a response; those of a kind that this version does not know are left out."""
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

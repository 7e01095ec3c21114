"""Events as lines for humans and as rows for programs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from barnabas.admin import Interruption
from barnabas_common.events import Event
from barnabas_common.events.event_text import in_words
from barnabas_common.printable import printable


def clock(time_ms: int) -> str:
    """Format a local time of day, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000).strftime("%H:%M:%S.%f")[:-3]


def event_line(event: Event) -> str:
    """`20:57:11.123 broker 2 flights-0 leader-elected: broker 1 died [leader=2 ...]`."""
    return f"{clock(event.time_ms)} {printable(in_words(event))}"


def event_row(event: Event) -> Mapping[str, Any]:
    """Return the fields of an event in JSON; their names are stable."""
    key = event.topic_partition
    return {
        "time_ms": event.time_ms,
        "broker": event.broker_id,
        "sequence": event.sequence,
        "kind": event.kind.value,
        "topic": key.topic if key else event.details.get("topic"),
        "partition": key.partition if key else None,
        "cause": event.cause,
        "details": dict(event.details),
    }


def interruption_line(interruption: Interruption) -> str:
    """Format a break in the stream of events: `20:57:11.123 (what was missed, and why)`."""
    return f"{clock(interruption.time_ms)} ({printable(interruption.what)})"


def interruption_row(interruption: Interruption) -> Mapping[str, Any]:
    """Return the fields of an interruption, as an event of the kind `interruption`."""
    return {
        "time_ms": interruption.time_ms,
        "broker": interruption.broker_id,
        "sequence": None,
        "kind": "interruption",
        "topic": None,
        "partition": None,
        "cause": interruption.what,
        "details": {"missed": interruption.missed},
    }

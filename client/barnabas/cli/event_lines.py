"""Events as lines for people and as rows for programs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from barnabas.admin import Interruption
from barnabas.events import Event, EventKind

# Beside the kind and the cause these say the most; the rest is in the JSON.
_TELLING = (
    "leader",
    "leader_epoch",
    "isr_before",
    "isr",
    "proposed",
    "rule",
    "from_offset",
    "to_offset",
    "epoch",
)


def clock(time_ms: int) -> str:
    """The time of day here, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000).strftime("%H:%M:%S.%f")[:-3]


def subject(event: Event) -> str:
    """The partition or topic that it is about, or nothing."""
    if event.topic_partition is not None:
        return str(event.topic_partition)
    return str(event.details.get("topic", ""))


def event_line(event: Event) -> str:
    """`20:57:11.123 broker 2 flights-0 leader-elected: broker 1 died [leader=2 ...]`."""
    parts = [clock(event.time_ms), f"broker {event.broker_id}", subject(event), event.kind.value]
    details = " ".join(_details(event))
    return f"{' '.join(filter(None, parts))}: {event.cause}" + (f"  [{details}]" if details else "")


def _details(event: Event) -> list[str]:
    details = event.details
    if event.kind is EventKind.OFFSETS_MOVED:
        return [
            f"{name} {details.get(f'{field}_before')} -> {details.get(field)}"
            for name, field in (("LEO", "log_end_offset"), ("HW", "high_watermark"))
            if details.get(f"{field}_before") != details.get(field)
        ]
    return [f"{name}={_value(details[name])}" for name in _TELLING if name in details]


def _value(value: Any) -> str:
    return ",".join(map(str, value)) or "-" if isinstance(value, list) else str(value)


def event_row(event: Event) -> Mapping[str, Any]:
    """The fields of an event in JSON; their names are stable."""
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
    return f"{clock(interruption.time_ms)} ({interruption.what})"


def interruption_row(interruption: Interruption) -> Mapping[str, Any]:
    """As an event of no broker's own, of kind `interruption`."""
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

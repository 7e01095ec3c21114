"""An event as text, on one line."""

from typing import Any

from barnabas_common.events.event import Event, EventKind
from barnabas_common.printable import printable

# The details that matter most besides the kind and the cause.
_SHOWN_DETAILS = (
    "broker",
    "leader",
    "leader_epoch",
    "isr_before",
    "isr",
    "proposed",
    "rule",
    "from_offset",
    "to_offset",
    "epoch",
    "epoch_start_offset",
    "high_watermark",
    "generation",
    "member",
    "producer_id",
    "producer_epoch",
)


def subject(event: Event) -> str:
    """The partition, topic, group or transactional id that the event is about, or nothing."""
    if "transactional_id" in event.details:
        return f"transactional id {event.details['transactional_id']}"
    if event.topic_partition is not None:
        return str(event.topic_partition)
    if "group" in event.details:
        return f"group {event.details['group']}"
    return str(event.details.get("topic", ""))


def in_words(event: Event) -> str:
    """`broker 2 flights-0 leader-elected: broker 1 died  [leader=2 ...]`: all except the time.

    A client's control characters are escaped: they must not look like another line.
    """
    details = " ".join(_details(event))
    who = " ".join(filter(None, (f"broker {event.broker_id}", subject(event), event.kind.value)))
    text = f"{who}: {event.cause}" + (f"  [{details}]" if details else "")
    return printable(text)


def _details(event: Event) -> list[str]:
    details = event.details
    if event.kind is EventKind.OFFSETS_MOVED:
        return [
            f"{name} {details.get(f'{field}_before')} -> {details.get(field)}"
            for name, field in (("LEO", "log_end_offset"), ("HW", "high_watermark"))
            if details.get(f"{field}_before") != details.get(field)
        ]
    return [f"{name}={_value(details[name])}" for name in _SHOWN_DETAILS if name in details]


def _value(value: Any) -> str:
    return ",".join(map(str, value)) or "-" if isinstance(value, list) else str(value)

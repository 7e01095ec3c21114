"""Events: every change of state is recorded once, with its cause."""

from barnabas_common.events.event import Event, EventKind, Value, in_order
from barnabas_common.events.event_log import EventLog, Excerpt

__all__ = ["Event", "EventKind", "EventLog", "Excerpt", "Value", "in_order"]

"""The cluster explains itself: every change of state is one event, with its cause."""

from barnabas.events.event import Event, EventKind, Value
from barnabas.events.event_log import EventLog, Excerpt

__all__ = ["Event", "EventKind", "EventLog", "Excerpt", "Value"]

"""No broker reacts when /controller vanishes."""

from barnabas_controller.controller import Controller

assert Controller._watch_controller
Controller._watch_controller = lambda self, event: None  # type: ignore[method-assign]

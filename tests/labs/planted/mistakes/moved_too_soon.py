"""A reassignment is taken as complete before its targets are in the ISR."""

from barnabas_controller import reassignment

assert reassignment.is_complete
reassignment.is_complete = lambda *arguments, **named: True

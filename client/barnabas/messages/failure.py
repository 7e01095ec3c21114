"""Failure: the answer when a request's handler broke (any service)."""

from dataclasses import dataclass


@dataclass(slots=True)
class Failure:
    """A fault of the broker; nobody knows how much of the request was applied.

    Never seen by callers of a channel: they get `errors.MaybeApplied` with its message.
    """

    message: str

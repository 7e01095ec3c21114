"""Failure: the answer when a request's handler failed (any service)."""

from dataclasses import dataclass


@dataclass(slots=True)
class Failure:
    """An error of the broker; it is unknown how much of the request was applied.

    Callers of a channel never see it: they get `errors.MaybeApplied` with its message.
    """

    message: str

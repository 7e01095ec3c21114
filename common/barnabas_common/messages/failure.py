"""Failure: the response if a request's handler failed (any service)."""

from dataclasses import dataclass


@dataclass(slots=True)
class Failure:
    """The broker failed; it is unknown how much of the request was applied.

    A channel raises `errors.MaybeApplied` with this message instead of returning it.
    """

    message: str

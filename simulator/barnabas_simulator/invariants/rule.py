"""An invariant: a name, and a function that returns how it is broken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec

P = ParamSpec("P")


@dataclass(frozen=True)
class Rule(Generic[P]):
    """`broken` returns the contradicting states as text, or None if the invariant holds."""

    name: str
    broken: Callable[P, str | None]


def rule(name: str) -> Callable[[Callable[P, str | None]], Rule[P]]:
    """Make a function the rule of this name; its docstring states the rule."""

    def named(broken: Callable[P, str | None]) -> Rule[P]:
        return Rule(name, broken)

    return named

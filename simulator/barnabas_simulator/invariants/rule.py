"""What an invariant is here: a name, and a function that says how it is broken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec

P = ParamSpec("P")


@dataclass(frozen=True)
class Rule(Generic[P]):
    """`broken` returns the states that contradict each other, in words, or None where it holds."""

    name: str
    broken: Callable[P, str | None]


def rule(name: str) -> Callable[[Callable[P, str | None]], Rule[P]]:
    """Make a function the rule of this name; what it means is in its docstring."""

    def named(broken: Callable[P, str | None]) -> Rule[P]:
        return Rule(name, broken)

    return named

"""What a failing run was wrong about: which rule, which partitions, and since when."""

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants import InvariantViolation

STATES_WIDTH = 1_000


@dataclass(frozen=True)
class Conclusion:
    """`partitions`: none if the rule is about none, or the error names none. `at`: when it was
    found."""

    at: float
    rule: str
    partitions: tuple[TopicPartition, ...]
    since: str
    states: str

    def lines(self) -> list[str]:
        return [
            f"rule         {self.rule}",
            f"partitions   {', '.join(map(str, self.partitions)) or '-'}",
            f"wrong since  {self.since}",
            f"states       {textwrap.shorten(self.states, STATES_WIDTH, placeholder=' ...')}",
        ]


def conclude(error: Exception, at: float, known: Iterable[TopicPartition]) -> Conclusion:
    """`at`: when the error ended the run; `known`: all partitions that the run has had."""
    if isinstance(error, InvariantViolation):
        named = named_in(error.states, known)
        own = (error.partition,) if error.partition is not None else ()
        partitions = tuple(dict.fromkeys((*own, *named)))
        return Conclusion(error.at, error.name, partitions, error.since, error.states)
    states = str(error)
    if isinstance(error, AssertionError):
        rule = "what is judged when everything has been read back"
        since = f"not known; no invariant was broken until then, {at:.3f} s"
    else:
        rule, since = type(error).__name__, f"{at:.3f} s, when this error ended the run"
    return Conclusion(at, rule, named_in(states, known), since, states)


def named_in(text: str, known: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """The partitions whose names are in a text."""
    return tuple(sorted(one for one in known if names(text, str(one))))


def names(text: str, name: str) -> bool:
    """Whether a text has a name, and not only as a part of another one."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None

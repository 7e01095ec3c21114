"""What the rules have found: how often each was asked, and the first that was broken."""

from collections import Counter, deque
from typing import NoReturn, ParamSpec

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants.rule import Rule
from barnabas_simulator.invariants.violation import InvariantViolation
from barnabas_simulator.loop import VirtualLoop

P = ParamSpec("P")

EVENTS_KEPT = 40

Broken = tuple[str, TopicPartition | None, str]
"""What a violation is made of, which takes long: the rule's name, the partition, the states."""


class Findings:
    """`cluster`'s own events are added to those that a violation reports."""

    def __init__(self, cluster: SimulatedCluster | None) -> None:
        self.checks: Counter[str] = Counter()
        self.loop: VirtualLoop | None = None
        self._cluster = cluster
        self._events: deque[str] = deque(maxlen=EVENTS_KEPT)
        self._first: InvariantViolation | None = None

    def now(self) -> float:
        return self.loop.time() if self.loop is not None else 0.0

    def note(self, event: str) -> None:
        """Remember an event, to be reported with a violation."""
        self._events.append(f"{self.now():.3f} {event}")

    def hold(
        self, partition: TopicPartition | None, rule: Rule[P], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Ask a rule, and keep the first violation."""
        self.checks[rule.name] += 1
        states = rule.broken(*args, **kwargs)
        if states is not None and self._first is None:
            self._first = self.violation(rule.name, partition, states)

    def violation(
        self, name: str, partition: TopicPartition | None, states: str
    ) -> InvariantViolation:
        recorded = [] if self._cluster is None else self._cluster.story(EVENTS_KEPT)
        events = sorted([*self._events, *recorded], key=lambda line: float(line.split()[0]))
        return InvariantViolation(name, self.now(), partition, states, events[-EVENTS_KEPT:])

    def raise_first(self) -> None:
        """Raise the first violation, if there is one."""
        if self._first is not None:
            self.end(self._first)

    def end(self, violation: InvariantViolation) -> NoReturn:
        if self.loop is not None:
            self.loop.after_turn = None  # the tasks have not been cancelled yet
        raise violation

"""What the rules have found: how often each was asked, and the first that was broken."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, ParamSpec

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants.log_rules import Held
from barnabas_simulator.invariants.rule import Rule
from barnabas_simulator.invariants.view import Replica
from barnabas_simulator.invariants.violation import InvariantViolation
from barnabas_simulator.loop import VirtualLoop

P = ParamSpec("P")

EVENTS_KEPT = 40

Tell = Callable[[str, TopicPartition | None], None]
"""Receives what was noted, and the partition it is about."""

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
        self._tell: Tell | None = None
        self._held_at: dict[tuple[object, ...], float] = {}
        self._is_sampling = False

    def now(self) -> float:
        return self.loop.time() if self.loop is not None else 0.0

    def follow(self, tell: Tell) -> None:
        """Hand every note to `tell`, and remember when each rule held last."""
        self._tell = tell

    def note(self, event: str, partition: TopicPartition | None = None) -> None:
        """Remember an event, to be reported with a violation."""
        self._events.append(f"{self.now():.3f} {event}")
        if self._tell is not None:
            self._tell(event, partition)

    def hold(
        self, partition: TopicPartition | None, rule: Rule[P], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Ask a rule, and keep the first violation."""
        self.checks[rule.name] += 1
        states = rule.broken(*args, **kwargs)
        if states is not None:
            if self._first is None:
                since = self._since((rule, partition, *_brokers(args)))
                self._first = self.violation(rule.name, partition, states, since)
        elif self._tell is not None:
            self._held_at[rule, partition, *_brokers(args)] = self.now()

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """The rules that are asked in the block are not asked at each change."""
        self._is_sampling = True
        try:
            yield
        finally:
            self._is_sampling = False

    def _since(self, asked: tuple[object, ...]) -> str:
        """From when on the states contradict a rule that was just asked."""
        if not self._is_sampling:
            return f"{self.now():.3f} s, this very step"
        since = f"{self.now():.3f} s or before: it is compared at intervals"
        if self._tell is None or len(asked) == 2:  # it is not known whose replicas were compared
            return since
        held_at = self._held_at.get(asked)
        last = "now for the first time" if held_at is None else f"last right at {held_at:.3f} s"
        return f"{since}, {last}"

    def violation(
        self, name: str, partition: TopicPartition | None, states: str, since: str = ""
    ) -> InvariantViolation:
        recorded = [] if self._cluster is None else self._cluster.story(EVENTS_KEPT)
        events = sorted([*self._events, *recorded], key=lambda line: float(line.split()[0]))
        return InvariantViolation(name, self.now(), partition, states, events[-EVENTS_KEPT:], since)

    def end_late(self, missing: Broken, healed_at: float) -> NoReturn:
        """End the run: something has not come about since the faults stopped."""
        waited = f"from {healed_at:.3f} s, when the faults had stopped, to {self.now():.3f} s"
        self.end(self.violation(*missing, since=f"not known; it was waited for {waited}"))

    def raise_first(self) -> None:
        """Raise the first violation, if there is one."""
        if self._first is not None:
            self.end(self._first)

    def end(self, violation: InvariantViolation) -> NoReturn:
        if self.loop is not None:
            self.loop.after_turn = None  # the tasks have not been cancelled yet
        raise violation


def _brokers(args: tuple[object, ...]) -> list[int]:
    """The brokers whose replicas a rule compares."""
    replicas = (arg.replica if isinstance(arg, Held) else arg for arg in args)
    return sorted(one.broker_id for one in replicas if isinstance(one, Replica))

"""What a report shows beside anomalies: throughput, gaps, faults, leaders, lags.

Times are seconds since the first operation.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from barnabas_common.history.checks.runs import Runs
from barnabas_common.history.operations import (
    Fault,
    Operation,
    PartitionState,
    Poll,
    Send,
    Stage,
)

_NS = 1_000_000_000
_NOT_YET = -1


@dataclass
class Span:
    """A fault from its injection to its healing; `end` None if it was never healed."""

    fault: str
    target: str
    begin: float
    end: float | None = None
    error: str = ""


@dataclass
class State:
    """A partition's leader, -1 for none, and its ISR from `at` on."""

    at: float
    leader: int
    in_sync_replicas: list[int]


@dataclass
class Gap:
    """The longest time in which no record of a partition was acknowledged."""

    seconds: float = 0.0
    begin: float = 0.0


@dataclass
class Figures:
    """`sends` and `errors`: by stage, and by name. `lag`: the worst of each consumer, that is how
    long the newest record that a poll returned had not been the newest."""

    seconds: float = 0.0
    sends: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    acknowledged_by_second: Counter[int] = field(default_factory=Counter)
    longest_gap: dict[str, Gap] = field(default_factory=dict)
    faults: list[Span] = field(default_factory=list)
    states: dict[str, list[State]] = field(default_factory=dict)
    lag: dict[str, float] = field(default_factory=dict)
    deliveries: Counter[str] = field(default_factory=Counter)
    distinct: dict[str, int] = field(default_factory=dict)


class Watch:
    """Collects the figures of a history that passes through it."""

    def __init__(self) -> None:
        self.figures = Figures()
        self._begin: int | None = None
        self._last_acknowledged: dict[str, float] = {}
        self._acknowledged_at: dict[str, array[int]] = {}
        self._open_faults: dict[tuple[str, int], Span] = {}
        self._delivered: dict[tuple[str, str], Runs] = {}

    def passing(self, operations: Iterable[Operation]) -> Iterator[Operation]:
        """Yield the history; afterwards `figures` is complete."""
        for operation in operations:
            if self._begin is None:
                self._begin = operation.time
            self._take(operation, (operation.time - self._begin) / _NS)
            yield operation
        for (group, _), runs in self._delivered.items():
            distinct = self.figures.distinct
            distinct[group] = distinct.get(group, 0) + len(runs)

    def _take(self, operation: Operation, at: float) -> None:
        self.figures.seconds = at
        if operation.error:
            self.figures.errors[f"{operation.function}: {operation.error}"] += 1
        match operation:
            case Send():
                self._send(operation, at)
            case Poll():
                self._poll(operation)
            case Fault():
                self._fault(operation, at)
            case PartitionState():
                state = State(at, operation.leader, operation.in_sync_replicas)
                self.figures.states.setdefault(operation.partition, []).append(state)

    def _send(self, send: Send, at: float) -> None:
        self.figures.sends[send.stage.value] += 1
        before = self._last_acknowledged.setdefault(send.partition, at)
        if send.stage is not Stage.OK:
            return
        self.figures.acknowledged_by_second[int(at)] += 1
        longest = self.figures.longest_gap.setdefault(send.partition, Gap())
        if at - before > longest.seconds:
            longest.seconds, longest.begin = at - before, before
        self._last_acknowledged[send.partition] = at
        times = self._acknowledged_at.setdefault(send.partition, array("q"))
        if send.offset >= len(times):
            times.extend([_NOT_YET] * (send.offset + 1 - len(times)))
        if send.offset >= 0:
            times[send.offset] = send.time

    def _poll(self, poll: Poll) -> None:
        for partition, records in poll.records.items():
            if not records:
                continue
            if poll.group:
                self.figures.deliveries[poll.group] += len(records)
                runs = self._delivered.setdefault((poll.group, partition), Runs())
                for offset, _ in records:
                    runs.add(offset)
            times = self._acknowledged_at.get(partition, ())
            following = records[-1][0] + 1
            if following < len(times) and times[following] != _NOT_YET:
                lag = (poll.time - times[following]) / _NS
                worst = self.figures.lag
                worst[poll.process] = max(worst.get(poll.process, 0.0), lag)

    def _fault(self, fault: Fault, at: float) -> None:
        key = (fault.process, fault.number)
        if fault.stage is Stage.INVOKE:
            span = Span(fault.fault, fault.target, at)
            self._open_faults[key] = span
            self.figures.faults.append(span)
        else:
            span = self._open_faults.pop(key)
            span.end, span.error = at, fault.error

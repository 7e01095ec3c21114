"""Which states a campaign has reached: what no run was in was not tested.

`coverage` counts kinds of events; this counts what coincided. Everything is counted while a run
lasts, at changes that the checker sees anyway.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

from barnabas_simulator.campaign.faults.faults import FaultKind
from barnabas_simulator.invariants.view import Replica

PREFIX = "state: "
REPLICATION_FACTORS = (2, 3, 4)


class RoleChange(StrEnum):
    """What a replica goes through when its partition has another leader."""

    BECAME_LEADER = "became leader"
    BECAME_FOLLOWER = "became follower"
    TRUNCATED = "truncated"


class Classes:
    """Classes of a number, each from its bound to the next; the last is open."""

    def __init__(self, what: str, *bounds: int) -> None:
        ends = [following - 1 for following in bounds[1:]]
        labels = [f"{b}" if b == e else f"{b}-{e}" for b, e in zip(bounds, ends, strict=False)]
        self.what = what
        self.labels = [*labels, f"{bounds[-1]}+"]
        self._bounds = bounds

    @property
    def names(self) -> list[str]:
        return [f"{PREFIX}{self.what}: {label}" for label in self.labels]

    def name_of(self, number: int) -> str:
        return self.names[bisect(self._bounds, number) - 1]


EPOCHS = Classes("epochs in a log", 1, 2, 3, 5)
REQUESTS = Classes("unanswered requests of a producer at a change of leader", 0, 1, 2, 3)


class States:
    """Counts the states of a run in `counts`.

    `faults` returns the kinds that last or were there lately, `requests` how many requests of each
    producer are unanswered. Both are asked at a change only. `topic`: the one they send to.
    """

    def __init__(
        self,
        counts: Counter[str],
        topic: str,
        faults: Callable[[], Iterable[FaultKind]],
        requests: Callable[[], Sequence[int]],
    ) -> None:
        self._counts = counts
        self._topic = topic
        self._faults = faults
        self._requests = requests

    def state_changed(
        self,
        partition: TopicPartition,
        before: LeaderAndIsr | None,
        state: LeaderAndIsr,
        replicas: Sequence[int],
    ) -> None:
        """Count the size of an ISR, and what producers wait for when the leader is another."""
        if before is None or set(before.isr) != set(state.isr):
            self._counts[isr_of(len(state.isr), len(replicas))] += 1
        is_elected = before is not None and state.leader not in (before.leader, NO_LEADER)
        if is_elected and partition.topic == self._topic:
            self._counts.update(REQUESTS.name_of(count) for count in self._requests())

    def replica_changed(self, before: Replica | None, after: Replica) -> None:
        """Count the faults that a change of role coincides with, and a log's epochs."""
        changes = role_changes(before, after)
        if changes:
            self._counts.update(pair(f, change) for f in self._faults() for change in changes)
        epochs = len(after.epochs)
        if epochs and (before is None or len(before.epochs) != epochs):
            self._counts[EPOCHS.name_of(epochs)] += 1


def role_changes(before: Replica | None, after: Replica) -> list[RoleChange]:
    """Return what has changed since the last look, None before the first."""
    if before is None:
        return [_role(after)]
    changes = [RoleChange.TRUNCATED] if after.log_end < before.log_end else []
    if after.leader_epoch != before.leader_epoch or after.led_epoch != before.led_epoch:
        changes.insert(0, _role(after))
    return changes


def _role(replica: Replica) -> RoleChange:
    is_leader = replica.led_epoch is not None
    return RoleChange.BECAME_LEADER if is_leader else RoleChange.BECAME_FOLLOWER


def pair(fault: FaultKind, change: RoleChange) -> str:
    return f"{PREFIX}{change} under {fault}"


def isr_of(size: int, replicas: int) -> str:
    return f"{PREFIX}ISR of {size} of {replicas}"


def wanted() -> list[str]:
    """Return every state that a long campaign must reach."""
    return [
        *(pair(fault, change) for fault in FaultKind for change in RoleChange),
        *(isr_of(size, of) for of in REPLICATION_FACTORS for size in range(1, of + 1)),
        *EPOCHS.names,
        *REQUESTS.names,
    ]


def tables(counts: Counter[str]) -> list[str]:
    """Return the lines of a table for each family of states."""
    of_faults = [
        _row(fault, [counts[pair(fault, change)] for change in RoleChange]) for fault in FaultKind
    ]
    of_isrs = [
        _row(f"{of} replicas", [counts[isr_of(size, of)] for size in range(1, of + 1)])
        for of in REPLICATION_FACTORS
    ]
    lines = [
        _row("role changes under a fault", list(RoleChange)),
        *of_faults,
        "",
        _row("ISRs of so many members", range(1, REPLICATION_FACTORS[-1] + 1)),
        *of_isrs,
    ]
    for classes in (EPOCHS, REQUESTS):
        numbers = [counts[name] for name in classes.names]
        lines += ["", classes.what, _row("", classes.labels), _row("", numbers)]
    return lines


def _row(title: str, cells: Iterable[object]) -> str:
    return f"{title:<26}" + "".join(f"{cell!s:>16}" for cell in cells)

"""The leaders and ISRs that a partition has had, pieced together from all who saw them.

The controller says best why it decided, but it may be gone, and its memory with it. Leaders and
followers were told the cause with their role; what they say stands in.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.events import Event, EventKind
from barnabas.explain.view import NOBODY, PartitionView

_BY_CONTROLLER = (EventKind.LEADER_ELECTED, EventKind.ISR_CHANGED)
_BY_ROLE = (EventKind.BECAME_LEADER, EventKind.BECAME_FOLLOWER)


@dataclass(frozen=True)
class Decision:
    """Who was to lead from `leader_epoch` on, and why; `passed_over` says why not others."""

    leader_epoch: int
    leader: int
    cause: str
    time_ms: int
    unclean: bool = False
    passed_over: list[str] = field(default_factory=list)


def decisions(view: PartitionView) -> list[Decision]:
    """One for each leader epoch that anybody remembers, oldest first."""
    found: dict[int, Decision] = {}
    for event in view.told(*_BY_ROLE):
        epoch = number(event, "leader_epoch")
        leader = event.broker_id
        if event.kind is EventKind.BECAME_FOLLOWER:
            leader = number(event, "leader")
        if epoch not in found and event.cause:
            found[epoch] = Decision(epoch, leader, event.cause, event.time_ms)
    for event in view.told(*_BY_CONTROLLER):
        if "leader_before" in event.details:
            epoch = number(event, "leader_epoch")
            found[epoch] = Decision(
                epoch,
                number(event, "leader"),
                event.cause,
                event.time_ms,
                bool(event.details.get("unclean")),
                texts(event, "passed_over"),
            )
    return [found[epoch] for epoch in sorted(found)]


def taking_office(past: Iterable[Decision], leader: int, epoch: int) -> Decision | None:
    """The decision by which `leader`, which leads in `epoch`, came to lead: later ones may have
    changed the ISR only."""
    office = None
    for decision in past:
        if decision.leader_epoch > epoch:
            break
        if decision.leader != leader:
            office = None
        elif office is None:
            office = decision
    return office


@dataclass(frozen=True)
class IsrChange:
    """The ISR became `after`, at one instant, for one reason."""

    before: list[int]
    after: list[int]
    cause: str
    time_ms: int


def isr_changes(view: PartitionView) -> list[IsrChange]:
    """All that anybody remembers, oldest first; leader and controller may both tell of one.

    By the version of the state znode, not by clocks: those of two brokers may differ.
    """
    kinds = (EventKind.ISR_CHANGED, EventKind.ISR_CHANGE_ACCEPTED, EventKind.LEADER_ELECTED)
    return [
        IsrChange(numbers(event, "isr_before"), numbers(event, "isr"), event.cause, event.time_ms)
        for event in sorted(view.told(*kinds), key=lambda event: number(event, "partition_epoch"))
    ]


def last_exit(changes: Iterable[IsrChange], broker_id: int) -> IsrChange | None:
    """The latest change that took this broker out of the ISR."""
    exits = [c for c in changes if broker_id in c.before and broker_id not in c.after]
    return exits[-1] if exits else None


def last_entry(changes: Iterable[IsrChange], broker_id: int) -> IsrChange | None:
    """The latest change that brought this broker into the ISR."""
    entries = [c for c in changes if broker_id not in c.before and broker_id in c.after]
    return entries[-1] if entries else None


def number(event: Event, name: str) -> int:
    """A detail that is a number; -1 where the event does not have it."""
    value = event.details.get(name)
    return value if isinstance(value, int) else NOBODY


def numbers(event: Event, name: str) -> list[int]:
    """A detail that is a list of numbers."""
    value = event.details.get(name)
    return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []


def texts(event: Event, name: str) -> list[str]:
    """A detail that is a list of texts."""
    value = event.details.get(name)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

"""The leaders and ISRs that a partition has had, collected from the events of all brokers.

The controller's events have the best cause, but its process may have ended, and its events with it.
Leaders and followers received the cause with their role; their events are used instead, but not
those of a role that was sent again, whose cause is only that of the repetition.

A chain of leaders is followed through consecutive epochs only: where one is missing, nothing is
said about what came before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas_common.events import Event, EventKind
from barnabas_common.messages.control import SENT_AGAIN

from barnabas.explain.view import PartitionView

_BY_CONTROLLER = (EventKind.LEADER_ELECTED, EventKind.ISR_CHANGED)
_BY_ROLE = (EventKind.BECAME_LEADER, EventKind.BECAME_FOLLOWER)


@dataclass(frozen=True)
class Decision:
    """The leader from `leader_epoch` on, and why; `passed_over` says why not another replica.

    `leader_before` is None if only the roles that were sent are known.
    """

    leader_epoch: int
    leader: int
    cause: str
    time_ms: int
    unclean: bool = False
    passed_over: list[str] = field(default_factory=list)
    leader_before: int | None = None


def decisions(view: PartitionView) -> list[Decision]:
    """One for each leader epoch that is found in the events, oldest first."""
    found: dict[int, Decision] = {}
    for event in view.partition_events(*_BY_ROLE):
        epoch = number(event, "leader_epoch")
        leader = event.broker_id
        if event.kind is EventKind.BECAME_FOLLOWER:
            leader = number(event, "leader")
        if epoch not in found and event.cause and not event.cause.startswith(SENT_AGAIN):
            found[epoch] = Decision(epoch, leader, event.cause, event.time_ms)
    for event in view.partition_events(*_BY_CONTROLLER):
        if "leader_before" in event.details:
            epoch = number(event, "leader_epoch")
            found[epoch] = Decision(
                epoch,
                number(event, "leader"),
                event.cause,
                event.time_ms,
                bool(event.details.get("unclean")),
                texts(event, "passed_over"),
                number(event, "leader_before"),
            )
    return [found[epoch] for epoch in sorted(found)]


def election_of(past: Iterable[Decision], leader: int, epoch: int) -> Decision | None:
    """The decision that made `leader`, which leads in `epoch`, the leader. Later decisions may have
    changed only the ISR. None if it is not known for certain."""
    by_epoch = {decision.leader_epoch: decision for decision in past}
    while (decision := by_epoch.get(epoch)) is not None and decision.leader == leader:
        if decision.leader_before is not None:
            elected = decision.leader_before != leader
        else:
            before = by_epoch.get(epoch - 1)
            elected = epoch == 0 or (before is not None and before.leader != leader)
        if elected:
            return decision
        epoch -= 1
    return None


@dataclass(frozen=True)
class IsrChange:
    """The ISR became `after`, at one instant, for one reason."""

    before: list[int]
    after: list[int]
    cause: str
    time_ms: int


def isr_changes(view: PartitionView) -> list[IsrChange]:
    """All changes in the events, oldest first; leader and controller may both report one.

    They are ordered by the version of the state znode, because two brokers' clocks may differ. If
    both report a change, the leader's report comes last: the controller does not know the cause of
    a change that the leader wrote itself.
    """
    kinds = (EventKind.ISR_CHANGED, EventKind.ISR_CHANGE_ACCEPTED, EventKind.LEADER_ELECTED)
    return [
        IsrChange(numbers(event, "isr_before"), numbers(event, "isr"), event.cause, event.time_ms)
        for event in sorted(
            view.partition_events(*kinds),
            key=lambda event: (number(event, "partition_epoch"), "leader" not in event.details),
        )
    ]


def last_exit(changes: Iterable[IsrChange], broker_id: int) -> IsrChange | None:
    """The latest change that removed this broker from the ISR."""
    exits = [c for c in changes if broker_id in c.before and broker_id not in c.after]
    return exits[-1] if exits else None


def last_entry(changes: Iterable[IsrChange], broker_id: int) -> IsrChange | None:
    """The latest change that added this broker to the ISR."""
    entries = [c for c in changes if broker_id not in c.before and broker_id in c.after]
    return entries[-1] if entries else None


def number(event: Event, name: str) -> int:
    """A detail that is a number; -1 if the event does not have it."""
    value = event.details.get(name)
    return value if isinstance(value, int) else -1


def numbers(event: Event, name: str) -> list[int]:
    """A detail that is a list of numbers."""
    value = event.details.get(name)
    return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []


def texts(event: Event, name: str) -> list[str]:
    """A detail that is a list of texts."""
    value = event.details.get(name)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

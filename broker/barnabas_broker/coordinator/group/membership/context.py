"""What the parts of a group coordinator need of the broker, so that none of them does I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventLog

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.member import Timer

Stored = Callable[[ErrorCode], None]


class StoreGroup(Protocol):
    """Writes a group with these assignments; calls `stored` when that is committed or failed."""

    def __call__(self, group: Group, assignments: Mapping[str, bytes], stored: Stored) -> None: ...


@dataclass(frozen=True)
class GroupLimits:
    """The broker's settings of these names, times in ms."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int


@dataclass(frozen=True)
class GroupContext:
    """`now` is in seconds, `call_later` takes seconds. `new_id` makes the ids of members unique.

    `is_committed`: whether no later coordinator can be without what is known of the group here.
    """

    limits: GroupLimits
    now: Callable[[], float]
    wall_ms: Callable[[], int]
    call_later: Callable[[float, Callable[[], None]], Timer]
    new_id: Callable[[], str]
    store: StoreGroup
    is_committed: Callable[[Group], bool]
    events: EventLog

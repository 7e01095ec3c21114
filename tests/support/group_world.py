"""Groups without a broker: the rules of membership over a clock that a test moves by hand."""

import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.membership.context import (
    GroupContext,
    GroupLimits,
    Stored,
)
from barnabas_broker.coordinator.group.membership.join import Joining, Joins
from barnabas_broker.coordinator.group.membership.rebalance import Rebalances
from barnabas_broker.coordinator.group.membership.sync import Syncs
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)

SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 20_000, 3_000
RANGE: Mapping[str, bytes] = {"range": b"r"}


@dataclass
class _Timer:
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Answers:
    """What one request was answered; it is not answered yet while both lists are empty."""

    joins: list[JoinGroupResponse] = field(default_factory=list)
    syncs: list[SyncGroupResponse] = field(default_factory=list)

    @property
    def join(self) -> JoinGroupResponse:
        (answer,) = self.joins
        return answer

    @property
    def sync(self) -> SyncGroupResponse:
        (answer,) = self.syncs
        return answer


class GroupWorld:
    """One group, `g`. `store_error` is the outcome of writes; `hold_writes` delays them.

    `is_committed`: whether the group's log is.
    """

    def __init__(self, max_size: int = 100, delay_ms: int = DELAY_MS) -> None:
        self.now = 0.0
        self.stored: list[dict[str, bytes]] = []
        self.store_error = ErrorCode.NONE
        self.hold_writes = False
        self.is_committed = True
        self._held: list[Stored] = []
        self._timers: list[tuple[float, int, _Timer, Callable[[], None]]] = []
        self._sequence = itertools.count()
        self._ids = itertools.count(1)
        self.events = EventLog(1)
        self.group = Group("g")
        context = GroupContext(
            limits=GroupLimits(6_000, 1_800_000, delay_ms, max_size),
            now=lambda: self.now,
            wall_ms=lambda: int(self.now * 1000),
            call_later=self._call_later,
            new_id=lambda: f"id{next(self._ids)}",
            store=self._store,
            is_committed=lambda group: self.is_committed,
            events=self.events,
        )
        self.rebalances = Rebalances(context)
        self.joins = Joins(context, self.rebalances)
        self.syncs = Syncs(context, self.rebalances)

    # ---- time and writes

    def _call_later(self, seconds: float, then: Callable[[], None]) -> _Timer:
        timer = _Timer()
        heapq.heappush(self._timers, (self.now + seconds, next(self._sequence), timer, then))
        return timer

    def advance(self, seconds: float) -> None:
        """Move the clock; timers fire at their own time."""
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            at, _, timer, then = heapq.heappop(self._timers)
            if not timer.cancelled:
                self.now = at
                then()
        self.now = end

    def _store(self, group: Group, assignments: Mapping[str, bytes], stored: Stored) -> None:
        self.stored.append(dict(assignments))
        if self.hold_writes:
            self._held.append(stored)
        else:
            stored(self.store_error)

    def finish_first_write(self, error: ErrorCode) -> None:
        self._held.pop(0)(error)

    def finish_writes(self) -> None:
        held, self._held = self._held, []
        for stored in held:
            stored(self.store_error)

    # ---- requests

    def join_once(
        self,
        member_id: str = "",
        instance_id: str = "",
        metadata: Mapping[str, bytes] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Answers:
        answers = Answers()
        request = JoinGroupRequest(
            "g",
            session_ms,
            rebalance_ms,
            member_id,
            instance_id,
            protocol_type,
            [JoinGroupProtocol(*item) for item in metadata.items()],
            client_id="c",
        )
        self.joins.join(self.group, Joining(request, "/host", answers.joins.append))
        return answers

    def join_new(self, metadata: Mapping[str, bytes] = RANGE) -> tuple[str, Answers]:
        """A new dynamic member: it asks for an id, and joins with it."""
        refused = self.join_once(metadata=metadata).join
        assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return refused.member_id, self.join_once(refused.member_id, metadata=metadata)

    def sync(
        self, member_id: str, assignments: Mapping[str, bytes] | None = None, /, **changes: object
    ) -> Answers:
        answers = Answers()
        request = SyncGroupRequest(
            "g",
            self.group.generation_id,
            member_id,
            assignments=[SyncGroupAssignment(*item) for item in (assignments or {}).items()],
        )
        for name, value in changes.items():
            setattr(request, name, value)
        self.syncs.sync(self.group, request, answers.syncs.append)
        return answers

    def heartbeat(
        self, member_id: str, instance_id: str = "", generation: int | None = None
    ) -> ErrorCode:
        asked = self.group.generation_id if generation is None else generation
        request = HeartbeatRequest("g", asked, member_id, instance_id)
        return self.syncs.heartbeat(self.group, request)

    def leave(self, member_id: str = "", instance_id: str = "") -> ErrorCode:
        left = self.syncs.leave(self.group, MemberIdentity(member_id, instance_id))
        return ErrorCode(left.error_code)

    def stable(self, count: int) -> list[str]:
        """Let members join, and the leader give each an assignment named after it."""
        joining = [self.join_new() for _ in range(count)]
        while self.group.state is GroupState.PREPARING_REBALANCE:
            self.advance(0.1)
        assert all(answers.join.error_code == 0 for _, answers in joining)
        return self.assign()

    def assign(self) -> list[str]:
        """Have every member of the generation sync; the leader's assignment names each."""
        members = list(self.group.members)
        assignments = {member_id: member_id.encode() for member_id in members}
        for member_id in members:
            leads = self.group.is_leader(member_id)
            self.sync(member_id, assignments if leads else None)
        return members

    def kinds(self) -> list[EventKind]:
        return [event.kind for event in self.events.since(0)]

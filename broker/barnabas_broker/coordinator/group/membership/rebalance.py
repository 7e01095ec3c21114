"""Rebalances: from the first JoinGroup to the answer that every member gets, and who is left out.

A rebalance is complete when every known member has joined again, or when the longest rebalance
timeout of a member is over; the dynamic members that did not come are then removed. The first
rebalance of an empty group waits for `group.initial.rebalance.delay.ms` instead, longer while new
members arrive (KIP-134).
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, Value
from barnabas_common.messages.groups import JoinGroupResponse, SyncGroupResponse

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.member import Member, Timer
from barnabas_broker.coordinator.group.membership.context import GroupContext
from barnabas_broker.coordinator.group.membership.sessions import Sessions
from barnabas_broker.coordinator.group.states import GroupState, can_rebalance

# How long a new member may wait for its first answer: until then it cannot heartbeat.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000


class _Deadline(NamedTuple):
    at: float
    timer: Timer


class Rebalances:
    """The only one that moves groups to PreparingRebalance and on to the next generation."""

    def __init__(self, context: GroupContext) -> None:
        self._context = context
        self.sessions = Sessions(context, self._session_expired)
        self._joins: dict[str, _Deadline] = {}
        self._initial: set[str] = set()
        self._syncs: dict[str, _Deadline] = {}

    # ---- the beginning

    def begin_if_possible(self, group: Group, reason: str) -> None:
        """Begin a rebalance, unless one has begun and waits for its members."""
        if can_rebalance(group.state):
            self.begin(group, reason)

    def begin(self, group: Group, reason: str) -> None:
        """Begin a rebalance; members that wait for an assignment must join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.drop_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._cancel(self._syncs, group)
        was_empty = group.state is GroupState.EMPTY
        self._report(EventKind.GROUP_REBALANCING, reason, group, state_before=group.state.value)
        group.change_state(GroupState.PREPARING_REBALANCE, self._context.wall_ms())
        if was_empty:
            delay = self._context.limits.initial_rebalance_delay_ms
            self._initial.add(group.group_id)
            self._wait_for_more(group, delay, max(group.rebalance_timeout_ms - delay, 0))
        else:
            self._wait_for_all(group)
            self.check_joined(group)

    def _wait_for_more(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        def over() -> None:
            if group.new_member_added and remaining_ms:
                group.new_member_added = False
                longer = min(self._context.limits.initial_rebalance_delay_ms, remaining_ms)
                self._wait_for_more(group, longer, max(remaining_ms - delay_ms, 0))
            else:
                self._complete(group)

        self._set(self._joins, group, delay_ms, over)

    def _wait_for_all(self, group: Group) -> None:
        timeout = group.rebalance_timeout_ms
        self._set(self._joins, group, timeout, lambda: self._complete(group))

    # ---- the end

    def check_joined(self, group: Group) -> None:
        """Complete the rebalance if every member has joined."""
        waits = group.state is GroupState.PREPARING_REBALANCE
        if waits and not self.is_initial(group) and group.has_all_members_joined:
            self._complete(group)

    def _complete(self, group: Group) -> None:
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        self._cancel(self._joins, group)
        self._initial.discard(group.group_id)
        for member in group.not_yet_rejoined:
            if not member.is_static:
                self._drop(group, member, "it did not join again within the rebalance timeout")
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has come; their sessions will end.
            self._wait_for_all(group)
            return
        group.init_next_generation(self._context.wall_ms())
        cause = "every member has joined" if group.members else "no member is left"
        self._report(EventKind.GROUP_GENERATION, cause, group, members=list(group.members))
        if group.members:
            self._answer_all(group)
        else:
            self._context.store(group, {}, lambda _: None)

    def _answer_all(self, group: Group) -> None:
        for member in list(group.members.values()):
            is_leader = group.is_leader(member.member_id)
            member.joined(group.join_response(member.member_id, members=is_leader))
            self.sessions.extend(group, member)
            member.is_new = False
            group.pending_sync_members.add(member.member_id)
        timeout = group.rebalance_timeout_ms
        generation = group.generation_id
        self._set(self._syncs, group, timeout, lambda: self._sync_overdue(group, generation))

    def _sync_overdue(self, group: Group, generation_id: int) -> None:
        """Members that have joined and not asked for their assignment hold the group up."""
        if group.generation_id != generation_id or not can_rebalance(group.state):
            return
        overdue = [group.members[member_id] for member_id in sorted(group.pending_sync_members)]
        for member in overdue:
            self._drop(group, member, "it did not ask for its assignment in time")
        if overdue:
            names = ", ".join(member.member_id for member in overdue)
            self.begin(group, f"{names} did not ask for an assignment in time")

    def asked_for_assignment(self, group: Group, member_id: str) -> None:
        """A member has sent SyncGroup."""
        group.pending_sync_members.discard(member_id)
        if not group.pending_sync_members:
            self._cancel(self._syncs, group)

    def drop_assignments(self, group: Group, error: ErrorCode) -> None:
        """Forget the assignments; members that wait for theirs get the error."""
        for member in list(group.members.values()):
            member.assignment = b""
            if member.synced(SyncGroupResponse(error)):
                self.sessions.extend(group, member)

    # ---- members that go

    def remove(self, group: Group, member: Member, kind: EventKind, cause: str) -> None:
        """Remove a member that leaves or has expired; the others rebalance."""
        self._drop(group, member, cause, kind)
        if group.state is GroupState.PREPARING_REBALANCE:
            self.check_joined(group)
        else:
            self.begin_if_possible(group, f"{member.member_id} is gone: {cause}")

    def remove_pending(self, group: Group, member_id: str) -> None:
        """Do not wait any longer for an id that was given out."""
        self.sessions.came(group, member_id)
        group.remove(member_id)
        self.check_joined(group)

    def _session_expired(self, group: Group, member: Member) -> None:
        cause = f"no heartbeat within {member.session_timeout_ms} ms, its session timeout"
        if member.is_new:
            cause = f"a new member, it waited for the others for {NEW_MEMBER_JOIN_TIMEOUT_MS} ms"
        self.remove(group, member, EventKind.GROUP_MEMBER_EXPIRED, cause)

    def _drop(
        self,
        group: Group,
        member: Member,
        cause: str,
        kind: EventKind = EventKind.GROUP_MEMBER_EXPIRED,
    ) -> None:
        # A member that still waits is told, so that it joins again as a new one.
        member.joined(JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID))
        member.synced(SyncGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID))
        self.sessions.end(member)
        group.remove(member.member_id)
        self._report(kind, cause, group, member=member.member_id)

    def forget(self, group: Group, error: ErrorCode) -> None:
        """The group is no longer coordinated here, or deleted: requests that wait get the error."""
        self._cancel(self._joins, group)
        self._cancel(self._syncs, group)
        self._initial.discard(group.group_id)
        self.sessions.forget(group)
        for member in list(group.members.values()):
            member.joined(JoinGroupResponse(error))
            member.synced(SyncGroupResponse(error))

    # ---- timers and events

    def is_initial(self, group: Group) -> bool:
        """Whether it waits for more members, not for certain ones."""
        return group.group_id in self._initial

    def deadline(self, group: Group) -> float | None:
        """When the group goes on without the members that it waits for; None: it waits for none."""
        timers = {
            GroupState.PREPARING_REBALANCE: self._joins,
            GroupState.COMPLETING_REBALANCE: self._syncs,
        }.get(group.state, {})
        found = timers.get(group.group_id)
        return None if found is None else found.at

    def _set(
        self, timers: dict[str, _Deadline], group: Group, ms: int, then: Callable[[], None]
    ) -> None:
        self._cancel(timers, group)
        seconds = ms / 1000
        timer = self._context.call_later(seconds, then)
        timers[group.group_id] = _Deadline(self._context.now() + seconds, timer)

    def _cancel(self, timers: dict[str, _Deadline], group: Group) -> None:
        deadline = timers.pop(group.group_id, None)
        if deadline is not None:
            deadline.timer.cancel()

    def _report(self, kind: EventKind, cause: str, group: Group, **details: Value) -> None:
        self._context.events.record(
            kind,
            cause,
            None,
            group=group.group_id,
            generation=group.generation_id,
            **details,
        )

"""JoinGroup: who becomes a member, under which id, and what is answered without a rebalance.

A new dynamic member is first given an id and asked to join again with it, so that a request that is
repeated does not leave a member without a consumer behind (KIP-394). A static member that joins
without its id replaces itself, without a rebalance if the group is stable (KIP-345).
"""

from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.groups import JoinGroupRequest, JoinGroupResponse

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.member import AnswerJoin, Member, Protocols
from barnabas_broker.coordinator.group.membership.context import GroupContext
from barnabas_broker.coordinator.group.membership.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    Rebalances,
)
from barnabas_broker.coordinator.group.states import GroupState


class Joining(NamedTuple):
    """One JoinGroup: the request, the sender's address, and how to answer it."""

    request: JoinGroupRequest
    client_host: str
    answer: AnswerJoin

    @property
    def protocols(self) -> Protocols:
        return tuple((item.name, item.metadata) for item in self.request.protocols)

    @property
    def reason(self) -> str:
        return self.request.reason or "not given"

    def refuse(self, error: ErrorCode, member_id: str = "") -> None:
        self.answer(JoinGroupResponse(error, member_id=member_id))


class Joins:
    """Answers JoinGroup requests for groups that are coordinated here."""

    def __init__(self, context: GroupContext, rebalances: Rebalances) -> None:
        self._context = context
        self._rebalances = rebalances
        self._sessions = rebalances.sessions

    def session_timeout_allowed(self, session_timeout_ms: int) -> bool:
        limits = self._context.limits
        return limits.min_session_timeout_ms <= session_timeout_ms <= limits.max_session_timeout_ms

    def join(self, group: Group, joining: Joining) -> None:
        """Answer at once, or when the rebalance is complete."""
        request = joining.request
        if group.state is GroupState.DEAD:
            joining.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id)
        elif not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            joining.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not group.supports_protocols(request.protocol_type, joining.protocols):
            joining.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif request.member_id:
            self._known_member(group, joining)
        else:
            self._new_member(group, joining)
        self._rebalances.check_joined(group)

    def _has_room(self, group: Group, member_id: str) -> bool:
        """Whether `group.max.size` lets this member in; members of the group stay (KIP-389)."""
        limit = self._context.limits.max_size
        member = group.members.get(member_id)
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            awaiting = sum(m.answer_join is not None for m in group.members.values())
            return (member is not None and member.answer_join is not None) or awaiting < limit
        return member is not None or len(group.members) < limit

    # ---- without a member id

    def _new_member(self, group: Group, joining: Joining) -> None:
        request = joining.request
        instance_id = request.group_instance_id
        member_id = f"{instance_id or request.client_id}-{self._context.new_id()}"
        if instance_id in group.static_members:
            self._replace_static(group, joining, member_id)
        elif instance_id:
            self._add(group, joining, member_id)
        else:
            self._sessions.expect(
                group,
                member_id,
                (request.client_id, joining.client_host),
                request.session_timeout_ms,
                lambda: self._rebalances.remove_pending(group, member_id),
            )
            joining.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _add(self, group: Group, joining: Joining, member_id: str) -> None:
        request = joining.request
        if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
            group.new_member_added = True
        member = Member(
            member_id,
            request.group_instance_id,
            request.client_id,
            joining.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            joining.protocols,
            is_new=True,
            answer_join=joining.answer,
        )
        if not group.members:
            group.protocol_type = request.protocol_type
        self._sessions.came(group, member_id)
        group.add(member)
        self._context.events.record(
            EventKind.GROUP_MEMBER_JOINED,
            f"it joined; its reason: {joining.reason}",
            group=group.group_id,
            member=member_id,
            client_id=request.client_id,
            client_host=joining.client_host,
            group_instance_id=request.group_instance_id,
        )
        # It cannot heartbeat before it knows its id, which may take as long as the rebalance.
        self._sessions.extend(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalances.begin_if_possible(group, f"{member_id} joined: {joining.reason}")

    # ---- with a member id

    def _known_member(self, group: Group, joining: Joining) -> None:
        request = joining.request
        member_id = request.member_id
        if member_id in group.pending_members and not request.group_instance_id:
            self._add(group, joining, member_id)
            return
        error = group.check_member(member_id, request.group_instance_id)
        if error:
            joining.refuse(error, member_id)
            return
        member = group.members[member_id]
        same = member.protocols == joining.protocols
        if group.state is GroupState.PREPARING_REBALANCE:
            self._update(group, member, joining, f"{member_id} joined again")
        elif group.state is GroupState.COMPLETING_REBALANCE and same:
            # Its answer was lost: it gets the same again.
            joining.answer(group.join_response(member_id, members=group.is_leader(member_id)))
        elif group.state is GroupState.STABLE and same and not group.is_leader(member_id):
            joining.answer(group.join_response(member_id))
        elif same:
            self._update(group, member, joining, f"the leader {member_id} joined again")
        else:
            self._update(group, member, joining, f"{member_id} changed what it supports")

    def _update(self, group: Group, member: Member, joining: Joining, why: str) -> None:
        self._take(member, joining)
        self._rebalances.begin_if_possible(group, f"{why}: {joining.reason}")

    def _take(self, member: Member, joining: Joining) -> None:
        """The member as it describes itself now; an earlier request of it gets no other answer."""
        member.joined(
            JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        )
        member.protocols = joining.protocols
        member.rebalance_timeout_ms = joining.request.rebalance_timeout_ms
        member.session_timeout_ms = joining.request.session_timeout_ms
        member.answer_join = joining.answer

    # ---- static members that return

    def _replace_static(self, group: Group, joining: Joining, member_id: str) -> None:
        request = joining.request
        leader_before = group.leader_id
        old_id = group.static_members[request.group_instance_id]
        member = group.replace_static(request.group_instance_id, member_id)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._take(member, joining)
        self._sessions.extend(group, member)
        why = f"static member {request.group_instance_id} returned as {member_id}"
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The leader may already have assigned to the old id.
            self._rebalances.begin(group, why)
        elif group.state is GroupState.STABLE:
            if group.select_protocol() != group.protocol_name:
                self._rebalances.begin(group, f"{why}, and the group's protocol changes")
                return
            assignments = {m.member_id: m.assignment for m in group.members.values()}
            generation_id = group.generation_id

            def stored(error: ErrorCode) -> None:
                # It may have returned once more, or a rebalance has begun, which answers it.
                is_current = group.members.get(member_id) is member
                is_stable = group.state is GroupState.STABLE
                if not is_current or not is_stable or group.generation_id != generation_id:
                    return
                if error:
                    self._undo_replacement(group, member, old_id, before, error, leader_before)
                    return
                is_leader = group.is_leader(member_id)
                response = group.join_response(member_id, members=is_leader)
                response.skip_assignment = is_leader
                member.joined(response)

            self._context.store(group, assignments, stored)

    def _undo_replacement(
        self,
        group: Group,
        member: Member,
        old_id: str,
        before: tuple[Protocols, int, int],
        error: ErrorCode,
        leader_before: str | None,
    ) -> None:
        """The new id could not be written: the old one counts, as after a move of the group."""
        answer, member.answer_join = member.answer_join, None
        member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
        group.replace_static(member.group_instance_id, old_id)
        self._sessions.extend(group, member)
        if answer is not None:
            response = group.join_response("")
            response.error_code, response.leader = error, leader_before or ""
            answer(response)

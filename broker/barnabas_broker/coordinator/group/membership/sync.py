"""SyncGroup, Heartbeat and LeaveGroup: what a member asks between two rebalances."""

from collections.abc import Mapping

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.member import AnswerSync
from barnabas_broker.coordinator.group.membership.context import GroupContext
from barnabas_broker.coordinator.group.membership.rebalance import Rebalances
from barnabas_broker.coordinator.group.states import GroupState


class Syncs:
    """Answers requests of members of groups that are coordinated here."""

    def __init__(self, context: GroupContext, rebalances: Rebalances) -> None:
        self._context = context
        self._rebalances = rebalances
        self._sessions = rebalances.sessions

    # ---- SyncGroup

    def sync(self, group: Group, request: SyncGroupRequest, answer: AnswerSync) -> None:
        """Answer at once, or when the leader's assignment is written."""
        error = _check_sync(group, request)
        if error:
            answer(SyncGroupResponse(error))
            return
        member = group.members[request.member_id]
        if group.state is GroupState.STABLE and not self._context.is_committed(group):
            # The next coordinator may be without this generation, and give its number to another.
            answer(SyncGroupResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        if group.state is GroupState.STABLE:
            self._rebalances.asked_for_assignment(group, member.member_id)
            answer(group.sync_response(member.assignment))
            self._sessions.extend(group, member)
            return
        # An earlier request of the same member gets no other answer.
        member.synced(SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
        member.answer_sync = answer
        self._rebalances.asked_for_assignment(group, member.member_id)
        if group.is_leader(member.member_id):
            self._write({item.member_id: item.assignment for item in request.assignments}, group)

    def _write(self, assigned: Mapping[str, bytes], group: Group) -> None:
        """Write the leader's assignment; members it left out get an empty one."""
        assignments = {member_id: assigned.get(member_id, b"") for member_id in group.members}
        generation_id = group.generation_id

        def stored(error: ErrorCode) -> None:
            current = group.generation_id == generation_id
            if not current or group.state is not GroupState.COMPLETING_REBALANCE:
                return
            if error:
                self._rebalances.drop_assignments(group, error)
                reason = f"the assignment could not be written: {error.name}"
                self._rebalances.begin_if_possible(group, reason)
            else:
                self._take(group, assignments)

        self._context.store(group, assignments, stored)

    def _take(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        group.change_state(GroupState.STABLE, self._context.wall_ms())
        self._context.events.record(
            EventKind.GROUP_STABLE,
            f"the leader {group.leader_id} has assigned with {group.protocol_name}",
            group=group.group_id,
            generation=group.generation_id,
            members=list(group.members),
        )
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.synced(group.sync_response(member.assignment)):
                self._sessions.extend(group, member)

    # ---- Heartbeat

    def heartbeat(self, group: Group, request: HeartbeatRequest) -> ErrorCode:
        """Extend the session, and say whether the member must join again."""
        error = check_generation(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        if error:
            return error
        self._sessions.extend(group, group.members[request.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # ---- LeaveGroup

    def leave(self, group: Group, leaving: MemberIdentity) -> MemberResponse:
        """Remove one member, named by its id, or by its instance id alone."""
        error = self._leave(group, leaving)
        return MemberResponse(leaving.member_id, leaving.group_instance_id, error)

    def _leave(self, group: Group, leaving: MemberIdentity) -> ErrorCode:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if member_id in group.pending_members:
            self._rebalances.remove_pending(group, member_id)
            return ErrorCode.NONE
        if not member_id:
            if instance_id not in group.static_members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[instance_id]
        error = group.check_member(member_id, instance_id)
        if error:
            return error
        cause = f"it left; its reason: {leaving.reason or 'not given'}"
        member = group.members[member_id]
        self._rebalances.remove(group, member, EventKind.GROUP_MEMBER_LEFT, cause)
        return ErrorCode.NONE


def check_generation(
    group: Group, member_id: str, group_instance_id: str, generation_id: int
) -> ErrorCode:
    """The checks of every request of a member, in Kafka's order."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.check_member(member_id, group_instance_id)
    if not error and generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _check_sync(group: Group, request: SyncGroupRequest) -> ErrorCode:
    error = check_generation(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    if error:
        return error
    if request.protocol_type and request.protocol_type != group.protocol_type:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name and request.protocol_name != group.protocol_name:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE

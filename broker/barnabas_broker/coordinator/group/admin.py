"""ListGroups, DescribeGroups and DeleteGroups."""

from collections.abc import Callable

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    DeletedGroup,
    DescribedGroup,
    DescribedGroupMember,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.coordinator.group.membership.awaited import Awaited
from barnabas_broker.coordinator.group.offsets import Offsets
from barnabas_broker.coordinator.group.states import GroupState


class GroupAdmin:
    """Answers administrators."""

    def __init__(
        self, groups: Groups, offsets: Offsets, waits_for: Callable[[Group], Awaited]
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._waits_for = waits_for

    def list(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """The groups that are coordinated here; what is still loading is missing, and said so."""
        if not self._groups.is_active:
            return ListGroupsResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        loading = self._groups.is_loading
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
        states = {state.lower() for state in request.states_filter}
        return ListGroupsResponse(
            error,
            [
                ListedGroup(group.group_id, group.protocol_type or "", group.state.value)
                for group in sorted(self._groups.all(), key=lambda group: group.group_id)
                if not states or group.state.value.lower() in states
            ],
        )

    def describe(self, group_id: str, without_members: bool = False) -> DescribedGroup:
        """A group that does not exist is Dead."""
        status = self._groups.status(group_id, empty_id_allowed=True)
        if status:
            return DescribedGroup(group_id, status)
        group = self._groups.get(group_id)
        if group is None:
            return DescribedGroup(group_id, group_state=GroupState.DEAD.value)
        stable = group.state is GroupState.STABLE
        awaited = self._waits_for(group)
        return DescribedGroup(
            group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if stable else "",
            members=[] if without_members else _members(group, stable),
            generation_id=group.generation_id,
            awaited=awaited.members,
            wait_left_ms=awaited.left_ms,
        )

    async def delete(self, group_id: str, client_id: str) -> DeletedGroup:
        """Only a group without members can be deleted."""
        error = self._groups.status(group_id, empty_id_allowed=True)
        group = self._groups.get(group_id)
        if not error and group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif not error and group is not None:
            if group.state is GroupState.EMPTY:
                cause = f"client {client_id!r} deleted it"
                error = await self._offsets.delete_group(group, cause)
            else:
                error = ErrorCode.NON_EMPTY_GROUP
        return DeletedGroup(group_id, error)


def _members(group: Group, stable: bool) -> "list[DescribedGroupMember]":
    return [
        DescribedGroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.metadata(group.protocol_name) if stable else b"",
            member.assignment if stable else b"",
        )
        for member in group.members.values()
    ]

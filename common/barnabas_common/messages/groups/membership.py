"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class JoinGroupProtocol:
    """A protocol the member supports, and what it tells the leader under this protocol."""

    name: str
    metadata: bytes = b""


@dataclass(slots=True)
class JoinGroupRequest:
    """Answered when every member has joined, or the rebalance timeout is over.

    A new member has an empty `member_id`; it is given one and asked to join again with it
    (KIP-394). `group_instance_id` is that of a static member (KIP-345). The member's preferred
    protocol is the first.
    """

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str = ""
    group_instance_id: str = ""
    protocol_type: str = ""
    protocols: list[JoinGroupProtocol] = field(default_factory=list)
    reason: str = ""
    client_id: str = ""


@dataclass(slots=True)
class JoinGroupMember:
    """`metadata` is the member's under the selected protocol."""

    member_id: str
    group_instance_id: str = ""
    metadata: bytes = b""


@dataclass(slots=True)
class JoinGroupResponse:
    """Only the leader gets `members`; with `skip_assignment` it must not assign (KIP-814)."""

    error_code: int = 0
    generation_id: int = -1
    protocol_type: str = ""
    protocol_name: str = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupMember] = field(default_factory=list)


@dataclass(slots=True)
class SyncGroupAssignment:
    member_id: str
    assignment: bytes = b""


@dataclass(slots=True)
class SyncGroupRequest:
    """Answered when the leader's assignment is written; only the leader sends `assignments`.

    An empty `protocol_type` or `protocol_name` is not checked.
    """

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    assignments: list[SyncGroupAssignment] = field(default_factory=list)
    client_id: str = ""


@dataclass(slots=True)
class SyncGroupResponse:
    error_code: int = 0
    protocol_type: str = ""
    protocol_name: str = ""
    assignment: bytes = b""


@dataclass(slots=True)
class HeartbeatRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str = ""
    client_id: str = ""


@dataclass(slots=True)
class HeartbeatResponse:
    error_code: int = 0


@dataclass(slots=True)
class MemberIdentity:
    """A member that leaves; a static one may be named by its instance id alone."""

    member_id: str = ""
    group_instance_id: str = ""
    reason: str = ""


@dataclass(slots=True)
class LeaveGroupRequest:
    group_id: str
    members: list[MemberIdentity] = field(default_factory=list)
    client_id: str = ""


@dataclass(slots=True)
class MemberResponse:
    member_id: str
    group_instance_id: str = ""
    error_code: int = 0


@dataclass(slots=True)
class LeaveGroupResponse:
    error_code: int = 0
    members: list[MemberResponse] = field(default_factory=list)

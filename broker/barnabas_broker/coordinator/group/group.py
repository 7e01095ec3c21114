"""A group: its members, its generation, its protocol and its leader (Kafka's `GroupMetadata`).

Plain data, and functions that change it without waiting. What may be done when is decided by
`rebalance`, `join` and `sync`; what is committed is in `committed`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import JoinGroupMember, JoinGroupResponse, SyncGroupResponse

from barnabas_broker.coordinator.group.committed.committed import Committed
from barnabas_broker.coordinator.group.member import Member, Protocols
from barnabas_broker.coordinator.group.records import NO_TIMESTAMP, GroupValue, MemberValue
from barnabas_broker.coordinator.group.states import GroupState, may_follow
from barnabas_broker.coordinator.group.subscription import (
    CONSUMER_PROTOCOL_TYPE,
    subscribed_topics,
)
from barnabas_broker.coordinator.record_fields import UnreadableRecord


class Group:
    """Starts Empty, without a protocol type.

    `pending_members` have been given an id and are expected to join with it (KIP-394).
    `pending_sync_members` have joined this generation and not yet asked for their assignment.
    `subscribed_topics` is None if what the members subscribe to is not known.
    """

    def __init__(self, group_id: str, state: GroupState = GroupState.EMPTY) -> None:
        self.group_id = group_id
        self.state = state
        self.state_timestamp_ms = NO_TIMESTAMP
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: set[str] = set()
        self.pending_sync_members: set[str] = set()
        self.new_member_added = False
        self.subscribed_topics: frozenset[str] | None = None
        self.committed = Committed()

    def change_state(self, state: GroupState, now_ms: int) -> None:
        """Raises ValueError for a change that Kafka's table does not have."""
        if not may_follow(state, self.state):
            raise ValueError(f"group {self.group_id!r}: {state} cannot follow {self.state}")
        self.state = state
        self.state_timestamp_ms = now_ms

    # ---- members

    def add(self, member: Member) -> None:
        """Add a member; the first one leads."""
        self.members[member.member_id] = member
        if member.is_static:
            self.static_members[member.group_instance_id] = member.member_id
        self.leader_id = self.leader_id or member.member_id
        self.pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, or the id of one that is expected to join."""
        member = self.members.pop(member_id, None)
        if member is not None and self.static_members.get(member.group_instance_id) == member_id:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync_members.discard(member_id)

    def replace_static(self, group_instance_id: str, new_member_id: str) -> Member:
        """Give a static member another id; a consumer that uses the old one is fenced (KIP-345)."""
        old_id = self.static_members[group_instance_id]
        member = self.members.pop(old_id)
        member.joined(JoinGroupResponse(ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))
        member.synced(SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID))
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[group_instance_id] = new_member_id
        if self.leader_id == old_id:
            self.leader_id = new_member_id
        if old_id in self.pending_sync_members:
            self.pending_sync_members.discard(old_id)
            self.pending_sync_members.add(new_member_id)
        return member

    def check_member(self, member_id: str, group_instance_id: str) -> ErrorCode:
        """UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or NONE, for a request of this member."""
        if group_instance_id:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return ErrorCode.NONE if current == member_id else ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    @property
    def not_yet_rejoined(self) -> list[Member]:
        return [member for member in self.members.values() if member.answer_join is None]

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_members and not self.not_yet_rejoined

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as its slowest member may need."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Let a member lead that has joined this rebalance; False if none has."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.answer_join is not None:
            return True
        for member in self.members.values():
            if member.answer_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    # ---- protocols

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these could be in this group."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        if self.protocol_type != protocol_type:
            return False
        return bool(self._supported_by_all({name for name, _ in protocols}))

    def _supported_by_all(self, names: set[str]) -> set[str]:
        """Those of the protocols that every member supports."""
        for member in self.members.values():
            names = names.intersection([name for name, _ in member.protocols])
        return names

    def select_protocol(self) -> str:
        """Of the protocols that all support, the one most members prefer."""
        members = list(self.members.values())
        candidates = self._supported_by_all({name for name, _ in members[0].protocols})
        votes = Counter(member.vote(candidates) for member in members)
        return votes.most_common(1)[0][0]

    # ---- generations

    def init_next_generation(self, now_ms: int) -> None:
        """The rebalance is complete: number the generation, and select what it uses."""
        self.generation_id += 1
        if self.members:
            self.protocol_name = self.select_protocol()
            self.change_state(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.change_state(GroupState.EMPTY, now_ms)
        self.subscribed_topics = self._subscribed_topics()
        self.pending_sync_members.clear()

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type is not None and not self.members:
            return frozenset()
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or self.protocol_name is None:
            return None
        try:
            topics = [
                subscribed_topics(member.metadata(self.protocol_name))
                for member in self.members.values()
            ]
        except UnreadableRecord:
            return None
        return frozenset().union(*topics)

    def member_metadata(self) -> list[JoinGroupMember]:
        """What the leader needs to assign."""
        return [
            JoinGroupMember(m.member_id, m.group_instance_id, m.metadata(self.protocol_name))
            for m in self.members.values()
        ]

    def join_response(self, member_id: str, members: bool = False) -> JoinGroupResponse:
        """The answer to a member of the current generation."""
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type or "",
            protocol_name=self.protocol_name or "",
            leader=self.leader_id or "",
            member_id=member_id,
            members=self.member_metadata() if members else [],
        )

    def sync_response(
        self, assignment: bytes, error: ErrorCode = ErrorCode.NONE
    ) -> SyncGroupResponse:
        return SyncGroupResponse(
            error, self.protocol_type or "", self.protocol_name or "", assignment
        )

    # ---- what is written

    def value(self, assignments: Mapping[str, bytes]) -> GroupValue:
        """What is written of this group, with these assignments of its members."""
        return GroupValue(
            self.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.leader_id,
            self.state_timestamp_ms,
            tuple(
                MemberValue(
                    m.member_id,
                    m.group_instance_id,
                    m.client_id,
                    m.client_host,
                    m.rebalance_timeout_ms,
                    m.session_timeout_ms,
                    m.metadata(self.protocol_name),
                    assignments.get(m.member_id, b""),
                )
                for m in self.members.values()
            ),
        )

    @classmethod
    def loaded(cls, group_id: str, value: GroupValue) -> "Group":
        """The group as it was written."""
        group = cls(group_id, GroupState.STABLE if value.members else GroupState.EMPTY)
        group.state_timestamp_ms = value.current_state_timestamp_ms
        group.generation_id = value.generation_id
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        for member in _members(value.members, value.protocol):
            group.add(member)
        group.leader_id = value.leader or group.leader_id
        group.subscribed_topics = group._subscribed_topics()
        return group


def _members(values: Iterable[MemberValue], protocol: str | None) -> list[Member]:
    return [
        Member(
            value.member_id,
            value.group_instance_id,
            value.client_id,
            value.client_host,
            value.rebalance_timeout_ms,
            value.session_timeout_ms,
            ((protocol or "", value.subscription),),
            value.assignment,
        )
        for value in values
    ]

"""ListGroups, DescribeGroups and DeleteGroups."""

from dataclasses import dataclass, field

from barnabas_common.messages.groups.committed import KAFKA_STORAGE


@dataclass(slots=True)
class ListGroupsRequest:
    """The groups of the broker that answers, those in one of the states if there are any.

    The groups of ZooKeeper are the same at every broker.
    """

    states_filter: list[str] = field(default_factory=list)
    storage: str = KAFKA_STORAGE
    client_id: str = ""


@dataclass(slots=True)
class ListedGroup:
    group_id: str
    protocol_type: str = ""
    group_state: str = ""


@dataclass(slots=True)
class ListGroupsResponse:
    error_code: int = 0
    groups: list[ListedGroup] = field(default_factory=list)


@dataclass(slots=True)
class DescribeGroupsRequest:
    """`without_members` is beyond Kafka: for those that ask only what a rebalance waits for."""

    groups: list[str] = field(default_factory=list)
    client_id: str = ""
    without_members: bool = False


@dataclass(slots=True)
class AwaitedMember:
    """Beyond Kafka: a rebalance waits for this member, which may be silent for so much longer."""

    member_id: str
    group_instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    session_left_ms: int = 0


@dataclass(slots=True)
class DescribedGroupMember:
    """`member_metadata` is empty while no protocol is selected."""

    member_id: str
    group_instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@dataclass(slots=True)
class DescribedGroup:
    """`protocol_data` is the selected protocol; state Dead: there is no such group.

    Beyond Kafka: the generation, whom a rebalance waits for, and for how much longer at most; -1:
    it waits for no member.
    """

    group_id: str
    error_code: int = 0
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    generation_id: int = 0
    awaited: list[AwaitedMember] = field(default_factory=list)
    wait_left_ms: int = -1


@dataclass(slots=True)
class DescribeGroupsResponse:
    groups: list[DescribedGroup] = field(default_factory=list)


@dataclass(slots=True)
class DeleteGroupsRequest:
    groups_names: list[str] = field(default_factory=list)
    storage: str = KAFKA_STORAGE
    client_id: str = ""


@dataclass(slots=True)
class DeletedGroup:
    group_id: str
    error_code: int = 0


@dataclass(slots=True)
class DeleteGroupsResponse:
    results: list[DeletedGroup] = field(default_factory=list)

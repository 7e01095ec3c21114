from barnabas_proto.v1 import failure_pb2 as _failure_pb2
from barnabas_proto.v1 import transactions_pb2 as _transactions_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CoordinatorRequest(_message.Message):
    __slots__ = ("correlation_id", "find_coordinator", "join_group", "sync_group", "heartbeat", "leave_group", "offset_commit", "offset_fetch", "offset_delete", "list_groups", "describe_groups", "delete_groups", "init_producer_id", "add_partitions_to_txn", "add_offsets_to_txn", "end_txn", "txn_offset_commit", "describe_transactions", "list_transactions")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    FIND_COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    JOIN_GROUP_FIELD_NUMBER: _ClassVar[int]
    SYNC_GROUP_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LEAVE_GROUP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_COMMIT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FETCH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_DELETE_FIELD_NUMBER: _ClassVar[int]
    LIST_GROUPS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    DELETE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    INIT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    ADD_PARTITIONS_TO_TXN_FIELD_NUMBER: _ClassVar[int]
    ADD_OFFSETS_TO_TXN_FIELD_NUMBER: _ClassVar[int]
    END_TXN_FIELD_NUMBER: _ClassVar[int]
    TXN_OFFSET_COMMIT_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    LIST_TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    find_coordinator: FindCoordinatorRequest
    join_group: JoinGroupRequest
    sync_group: SyncGroupRequest
    heartbeat: HeartbeatRequest
    leave_group: LeaveGroupRequest
    offset_commit: OffsetCommitRequest
    offset_fetch: OffsetFetchRequest
    offset_delete: OffsetDeleteRequest
    list_groups: ListGroupsRequest
    describe_groups: DescribeGroupsRequest
    delete_groups: DeleteGroupsRequest
    init_producer_id: InitProducerIdRequest
    add_partitions_to_txn: _transactions_pb2.AddPartitionsToTxnRequest
    add_offsets_to_txn: _transactions_pb2.AddOffsetsToTxnRequest
    end_txn: _transactions_pb2.EndTxnRequest
    txn_offset_commit: _transactions_pb2.TxnOffsetCommitRequest
    describe_transactions: _transactions_pb2.DescribeTransactionsRequest
    list_transactions: _transactions_pb2.ListTransactionsRequest
    def __init__(self, correlation_id: _Optional[int] = ..., find_coordinator: _Optional[_Union[FindCoordinatorRequest, _Mapping]] = ..., join_group: _Optional[_Union[JoinGroupRequest, _Mapping]] = ..., sync_group: _Optional[_Union[SyncGroupRequest, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatRequest, _Mapping]] = ..., leave_group: _Optional[_Union[LeaveGroupRequest, _Mapping]] = ..., offset_commit: _Optional[_Union[OffsetCommitRequest, _Mapping]] = ..., offset_fetch: _Optional[_Union[OffsetFetchRequest, _Mapping]] = ..., offset_delete: _Optional[_Union[OffsetDeleteRequest, _Mapping]] = ..., list_groups: _Optional[_Union[ListGroupsRequest, _Mapping]] = ..., describe_groups: _Optional[_Union[DescribeGroupsRequest, _Mapping]] = ..., delete_groups: _Optional[_Union[DeleteGroupsRequest, _Mapping]] = ..., init_producer_id: _Optional[_Union[InitProducerIdRequest, _Mapping]] = ..., add_partitions_to_txn: _Optional[_Union[_transactions_pb2.AddPartitionsToTxnRequest, _Mapping]] = ..., add_offsets_to_txn: _Optional[_Union[_transactions_pb2.AddOffsetsToTxnRequest, _Mapping]] = ..., end_txn: _Optional[_Union[_transactions_pb2.EndTxnRequest, _Mapping]] = ..., txn_offset_commit: _Optional[_Union[_transactions_pb2.TxnOffsetCommitRequest, _Mapping]] = ..., describe_transactions: _Optional[_Union[_transactions_pb2.DescribeTransactionsRequest, _Mapping]] = ..., list_transactions: _Optional[_Union[_transactions_pb2.ListTransactionsRequest, _Mapping]] = ...) -> None: ...

class CoordinatorResponse(_message.Message):
    __slots__ = ("correlation_id", "find_coordinator", "join_group", "sync_group", "heartbeat", "leave_group", "offset_commit", "offset_fetch", "offset_delete", "list_groups", "describe_groups", "delete_groups", "init_producer_id", "failure", "add_partitions_to_txn", "add_offsets_to_txn", "end_txn", "txn_offset_commit", "describe_transactions", "list_transactions")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    FIND_COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    JOIN_GROUP_FIELD_NUMBER: _ClassVar[int]
    SYNC_GROUP_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LEAVE_GROUP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_COMMIT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FETCH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_DELETE_FIELD_NUMBER: _ClassVar[int]
    LIST_GROUPS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    DELETE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    INIT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    ADD_PARTITIONS_TO_TXN_FIELD_NUMBER: _ClassVar[int]
    ADD_OFFSETS_TO_TXN_FIELD_NUMBER: _ClassVar[int]
    END_TXN_FIELD_NUMBER: _ClassVar[int]
    TXN_OFFSET_COMMIT_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    LIST_TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    find_coordinator: FindCoordinatorResponse
    join_group: JoinGroupResponse
    sync_group: SyncGroupResponse
    heartbeat: HeartbeatResponse
    leave_group: LeaveGroupResponse
    offset_commit: OffsetCommitResponse
    offset_fetch: OffsetFetchResponse
    offset_delete: OffsetDeleteResponse
    list_groups: ListGroupsResponse
    describe_groups: DescribeGroupsResponse
    delete_groups: DeleteGroupsResponse
    init_producer_id: InitProducerIdResponse
    failure: _failure_pb2.Failure
    add_partitions_to_txn: _transactions_pb2.AddPartitionsToTxnResponse
    add_offsets_to_txn: _transactions_pb2.AddOffsetsToTxnResponse
    end_txn: _transactions_pb2.EndTxnResponse
    txn_offset_commit: _transactions_pb2.TxnOffsetCommitResponse
    describe_transactions: _transactions_pb2.DescribeTransactionsResponse
    list_transactions: _transactions_pb2.ListTransactionsResponse
    def __init__(self, correlation_id: _Optional[int] = ..., find_coordinator: _Optional[_Union[FindCoordinatorResponse, _Mapping]] = ..., join_group: _Optional[_Union[JoinGroupResponse, _Mapping]] = ..., sync_group: _Optional[_Union[SyncGroupResponse, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatResponse, _Mapping]] = ..., leave_group: _Optional[_Union[LeaveGroupResponse, _Mapping]] = ..., offset_commit: _Optional[_Union[OffsetCommitResponse, _Mapping]] = ..., offset_fetch: _Optional[_Union[OffsetFetchResponse, _Mapping]] = ..., offset_delete: _Optional[_Union[OffsetDeleteResponse, _Mapping]] = ..., list_groups: _Optional[_Union[ListGroupsResponse, _Mapping]] = ..., describe_groups: _Optional[_Union[DescribeGroupsResponse, _Mapping]] = ..., delete_groups: _Optional[_Union[DeleteGroupsResponse, _Mapping]] = ..., init_producer_id: _Optional[_Union[InitProducerIdResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., add_partitions_to_txn: _Optional[_Union[_transactions_pb2.AddPartitionsToTxnResponse, _Mapping]] = ..., add_offsets_to_txn: _Optional[_Union[_transactions_pb2.AddOffsetsToTxnResponse, _Mapping]] = ..., end_txn: _Optional[_Union[_transactions_pb2.EndTxnResponse, _Mapping]] = ..., txn_offset_commit: _Optional[_Union[_transactions_pb2.TxnOffsetCommitResponse, _Mapping]] = ..., describe_transactions: _Optional[_Union[_transactions_pb2.DescribeTransactionsResponse, _Mapping]] = ..., list_transactions: _Optional[_Union[_transactions_pb2.ListTransactionsResponse, _Mapping]] = ...) -> None: ...

class FindCoordinatorRequest(_message.Message):
    __slots__ = ("key_type", "coordinator_keys", "client_id")
    KEY_TYPE_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_KEYS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    key_type: int
    coordinator_keys: _containers.RepeatedScalarFieldContainer[str]
    client_id: str
    def __init__(self, key_type: _Optional[int] = ..., coordinator_keys: _Optional[_Iterable[str]] = ..., client_id: _Optional[str] = ...) -> None: ...

class FoundCoordinator(_message.Message):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str
    def __init__(self, key: _Optional[str] = ..., node_id: _Optional[int] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., error_code: _Optional[int] = ..., error_message: _Optional[str] = ...) -> None: ...

class FindCoordinatorResponse(_message.Message):
    __slots__ = ("coordinators",)
    COORDINATORS_FIELD_NUMBER: _ClassVar[int]
    coordinators: _containers.RepeatedCompositeFieldContainer[FoundCoordinator]
    def __init__(self, coordinators: _Optional[_Iterable[_Union[FoundCoordinator, _Mapping]]] = ...) -> None: ...

class JoinGroupProtocol(_message.Message):
    __slots__ = ("name", "metadata")
    NAME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    metadata: bytes
    def __init__(self, name: _Optional[str] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class JoinGroupRequest(_message.Message):
    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason", "client_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str
    protocol_type: str
    protocols: _containers.RepeatedCompositeFieldContainer[JoinGroupProtocol]
    reason: str
    client_id: str
    def __init__(self, group_id: _Optional[str] = ..., session_timeout_ms: _Optional[int] = ..., rebalance_timeout_ms: _Optional[int] = ..., member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., protocol_type: _Optional[str] = ..., protocols: _Optional[_Iterable[_Union[JoinGroupProtocol, _Mapping]]] = ..., reason: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class JoinGroupMember(_message.Message):
    __slots__ = ("member_id", "group_instance_id", "metadata")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    group_instance_id: str
    metadata: bytes
    def __init__(self, member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class JoinGroupResponse(_message.Message):
    __slots__ = ("error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_NAME_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    SKIP_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    generation_id: int
    protocol_type: str
    protocol_name: str
    leader: str
    skip_assignment: bool
    member_id: str
    members: _containers.RepeatedCompositeFieldContainer[JoinGroupMember]
    def __init__(self, error_code: _Optional[int] = ..., generation_id: _Optional[int] = ..., protocol_type: _Optional[str] = ..., protocol_name: _Optional[str] = ..., leader: _Optional[str] = ..., skip_assignment: bool = ..., member_id: _Optional[str] = ..., members: _Optional[_Iterable[_Union[JoinGroupMember, _Mapping]]] = ...) -> None: ...

class SyncGroupAssignment(_message.Message):
    __slots__ = ("member_id", "assignment")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    assignment: bytes
    def __init__(self, member_id: _Optional[str] = ..., assignment: _Optional[bytes] = ...) -> None: ...

class SyncGroupRequest(_message.Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments", "client_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_NAME_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str
    protocol_type: str
    protocol_name: str
    assignments: _containers.RepeatedCompositeFieldContainer[SyncGroupAssignment]
    client_id: str
    def __init__(self, group_id: _Optional[str] = ..., generation_id: _Optional[int] = ..., member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., protocol_type: _Optional[str] = ..., protocol_name: _Optional[str] = ..., assignments: _Optional[_Iterable[_Union[SyncGroupAssignment, _Mapping]]] = ..., client_id: _Optional[str] = ...) -> None: ...

class SyncGroupResponse(_message.Message):
    __slots__ = ("error_code", "protocol_type", "protocol_name", "assignment")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_NAME_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    protocol_type: str
    protocol_name: str
    assignment: bytes
    def __init__(self, error_code: _Optional[int] = ..., protocol_type: _Optional[str] = ..., protocol_name: _Optional[str] = ..., assignment: _Optional[bytes] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "client_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str
    client_id: str
    def __init__(self, group_id: _Optional[str] = ..., generation_id: _Optional[int] = ..., member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("error_code",)
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    def __init__(self, error_code: _Optional[int] = ...) -> None: ...

class MemberIdentity(_message.Message):
    __slots__ = ("member_id", "group_instance_id", "reason")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    group_instance_id: str
    reason: str
    def __init__(self, member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class LeaveGroupRequest(_message.Message):
    __slots__ = ("group_id", "members", "client_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    members: _containers.RepeatedCompositeFieldContainer[MemberIdentity]
    client_id: str
    def __init__(self, group_id: _Optional[str] = ..., members: _Optional[_Iterable[_Union[MemberIdentity, _Mapping]]] = ..., client_id: _Optional[str] = ...) -> None: ...

class MemberResponse(_message.Message):
    __slots__ = ("member_id", "group_instance_id", "error_code")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    group_instance_id: str
    error_code: int
    def __init__(self, member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., error_code: _Optional[int] = ...) -> None: ...

class LeaveGroupResponse(_message.Message):
    __slots__ = ("error_code", "members")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    members: _containers.RepeatedCompositeFieldContainer[MemberResponse]
    def __init__(self, error_code: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MemberResponse, _Mapping]]] = ...) -> None: ...

class OffsetCommitPartition(_message.Message):
    __slots__ = ("topic", "partition", "committed_offset", "committed_leader_epoch", "committed_metadata")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., committed_offset: _Optional[int] = ..., committed_leader_epoch: _Optional[int] = ..., committed_metadata: _Optional[str] = ...) -> None: ...

class OffsetCommitRequest(_message.Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "partitions", "storage", "client_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str
    partitions: _containers.RepeatedCompositeFieldContainer[OffsetCommitPartition]
    storage: str
    client_id: str
    def __init__(self, group_id: _Optional[str] = ..., generation_id: _Optional[int] = ..., member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[OffsetCommitPartition, _Mapping]]] = ..., storage: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class OffsetCommitResult(_message.Message):
    __slots__ = ("topic", "partition", "error_code")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    error_code: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., error_code: _Optional[int] = ...) -> None: ...

class OffsetCommitResponse(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[OffsetCommitResult]
    def __init__(self, partitions: _Optional[_Iterable[_Union[OffsetCommitResult, _Mapping]]] = ...) -> None: ...

class OffsetFetchPartition(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class OffsetFetchGroup(_message.Message):
    __slots__ = ("group_id", "partitions", "all_topics")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALL_TOPICS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    partitions: _containers.RepeatedCompositeFieldContainer[OffsetFetchPartition]
    all_topics: bool
    def __init__(self, group_id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[OffsetFetchPartition, _Mapping]]] = ..., all_topics: bool = ...) -> None: ...

class OffsetFetchRequest(_message.Message):
    __slots__ = ("groups", "require_stable", "storage", "client_id")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_STABLE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[OffsetFetchGroup]
    require_stable: bool
    storage: str
    client_id: str
    def __init__(self, groups: _Optional[_Iterable[_Union[OffsetFetchGroup, _Mapping]]] = ..., require_stable: bool = ..., storage: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class CommittedOffset(_message.Message):
    __slots__ = ("topic", "partition", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str
    error_code: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., committed_offset: _Optional[int] = ..., committed_leader_epoch: _Optional[int] = ..., metadata: _Optional[str] = ..., error_code: _Optional[int] = ...) -> None: ...

class OffsetFetchGroupResult(_message.Message):
    __slots__ = ("group_id", "error_code", "partitions")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    error_code: int
    partitions: _containers.RepeatedCompositeFieldContainer[CommittedOffset]
    def __init__(self, group_id: _Optional[str] = ..., error_code: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[CommittedOffset, _Mapping]]] = ...) -> None: ...

class OffsetFetchResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[OffsetFetchGroupResult]
    def __init__(self, groups: _Optional[_Iterable[_Union[OffsetFetchGroupResult, _Mapping]]] = ...) -> None: ...

class OffsetDeletePartition(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class OffsetDeleteRequest(_message.Message):
    __slots__ = ("group_id", "partitions", "client_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    partitions: _containers.RepeatedCompositeFieldContainer[OffsetDeletePartition]
    client_id: str
    def __init__(self, group_id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[OffsetDeletePartition, _Mapping]]] = ..., client_id: _Optional[str] = ...) -> None: ...

class OffsetDeleteResult(_message.Message):
    __slots__ = ("topic", "partition", "error_code")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    error_code: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., error_code: _Optional[int] = ...) -> None: ...

class OffsetDeleteResponse(_message.Message):
    __slots__ = ("error_code", "partitions")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    partitions: _containers.RepeatedCompositeFieldContainer[OffsetDeleteResult]
    def __init__(self, error_code: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[OffsetDeleteResult, _Mapping]]] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("states_filter", "storage", "client_id")
    STATES_FILTER_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    states_filter: _containers.RepeatedScalarFieldContainer[str]
    storage: str
    client_id: str
    def __init__(self, states_filter: _Optional[_Iterable[str]] = ..., storage: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class ListedGroup(_message.Message):
    __slots__ = ("group_id", "protocol_type", "group_state")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    GROUP_STATE_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    protocol_type: str
    group_state: str
    def __init__(self, group_id: _Optional[str] = ..., protocol_type: _Optional[str] = ..., group_state: _Optional[str] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("error_code", "groups")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    groups: _containers.RepeatedCompositeFieldContainer[ListedGroup]
    def __init__(self, error_code: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[ListedGroup, _Mapping]]] = ...) -> None: ...

class DescribeGroupsRequest(_message.Message):
    __slots__ = ("groups", "client_id", "without_members")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    client_id: str
    without_members: bool
    def __init__(self, groups: _Optional[_Iterable[str]] = ..., client_id: _Optional[str] = ..., without_members: bool = ...) -> None: ...

class AwaitedMember(_message.Message):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "session_left_ms")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    SESSION_LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    group_instance_id: str
    client_id: str
    client_host: str
    session_left_ms: int
    def __init__(self, member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., client_id: _Optional[str] = ..., client_host: _Optional[str] = ..., session_left_ms: _Optional[int] = ...) -> None: ...

class DescribedGroupMember(_message.Message):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    MEMBER_METADATA_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    group_instance_id: str
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes
    def __init__(self, member_id: _Optional[str] = ..., group_instance_id: _Optional[str] = ..., client_id: _Optional[str] = ..., client_host: _Optional[str] = ..., member_metadata: _Optional[bytes] = ..., member_assignment: _Optional[bytes] = ...) -> None: ...

class DescribedGroup(_message.Message):
    __slots__ = ("group_id", "error_code", "group_state", "protocol_type", "protocol_data", "members", "generation_id", "awaited", "wait_left_ms")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    GROUP_STATE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_DATA_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    AWAITED_FIELD_NUMBER: _ClassVar[int]
    WAIT_LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    error_code: int
    group_state: str
    protocol_type: str
    protocol_data: str
    members: _containers.RepeatedCompositeFieldContainer[DescribedGroupMember]
    generation_id: int
    awaited: _containers.RepeatedCompositeFieldContainer[AwaitedMember]
    wait_left_ms: int
    def __init__(self, group_id: _Optional[str] = ..., error_code: _Optional[int] = ..., group_state: _Optional[str] = ..., protocol_type: _Optional[str] = ..., protocol_data: _Optional[str] = ..., members: _Optional[_Iterable[_Union[DescribedGroupMember, _Mapping]]] = ..., generation_id: _Optional[int] = ..., awaited: _Optional[_Iterable[_Union[AwaitedMember, _Mapping]]] = ..., wait_left_ms: _Optional[int] = ...) -> None: ...

class DescribeGroupsResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[DescribedGroup]
    def __init__(self, groups: _Optional[_Iterable[_Union[DescribedGroup, _Mapping]]] = ...) -> None: ...

class DeleteGroupsRequest(_message.Message):
    __slots__ = ("groups_names", "storage", "client_id")
    GROUPS_NAMES_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    groups_names: _containers.RepeatedScalarFieldContainer[str]
    storage: str
    client_id: str
    def __init__(self, groups_names: _Optional[_Iterable[str]] = ..., storage: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class DeletedGroup(_message.Message):
    __slots__ = ("group_id", "error_code")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    error_code: int
    def __init__(self, group_id: _Optional[str] = ..., error_code: _Optional[int] = ...) -> None: ...

class DeleteGroupsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[DeletedGroup]
    def __init__(self, results: _Optional[_Iterable[_Union[DeletedGroup, _Mapping]]] = ...) -> None: ...

class InitProducerIdRequest(_message.Message):
    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable_two_phase_commit", "keep_prepared")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ENABLE_TWO_PHASE_COMMIT_FIELD_NUMBER: _ClassVar[int]
    KEEP_PREPARED_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable_two_phase_commit: bool
    keep_prepared: bool
    def __init__(self, transactional_id: _Optional[str] = ..., transaction_timeout_ms: _Optional[int] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., enable_two_phase_commit: bool = ..., keep_prepared: bool = ...) -> None: ...

class InitProducerIdResponse(_message.Message):
    __slots__ = ("error_code", "producer_id", "producer_epoch", "error_message", "has_ongoing_transaction")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HAS_ONGOING_TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    producer_id: int
    producer_epoch: int
    error_message: str
    has_ongoing_transaction: bool
    def __init__(self, error_code: _Optional[int] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., error_message: _Optional[str] = ..., has_ongoing_transaction: bool = ...) -> None: ...

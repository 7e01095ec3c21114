from barnabas_proto.v1 import configs_pb2 as _configs_pb2
from barnabas_proto.v1 import failure_pb2 as _failure_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdminRequest(_message.Message):
    __slots__ = ("correlation_id", "metadata", "create_topics", "delete_topics", "describe_configs", "describe_replicas", "describe_events", "create_partitions", "alter_partition_reassignments", "list_partition_reassignments", "incremental_alter_configs", "elect_leaders")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_EVENTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    LIST_PARTITION_REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    INCREMENTAL_ALTER_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    metadata: MetadataRequest
    create_topics: CreateTopicsRequest
    delete_topics: DeleteTopicsRequest
    describe_configs: _configs_pb2.DescribeConfigsRequest
    describe_replicas: DescribeReplicasRequest
    describe_events: DescribeEventsRequest
    create_partitions: CreatePartitionsRequest
    alter_partition_reassignments: AlterPartitionReassignmentsRequest
    list_partition_reassignments: ListPartitionReassignmentsRequest
    incremental_alter_configs: _configs_pb2.IncrementalAlterConfigsRequest
    elect_leaders: ElectLeadersRequest
    def __init__(self, correlation_id: _Optional[int] = ..., metadata: _Optional[_Union[MetadataRequest, _Mapping]] = ..., create_topics: _Optional[_Union[CreateTopicsRequest, _Mapping]] = ..., delete_topics: _Optional[_Union[DeleteTopicsRequest, _Mapping]] = ..., describe_configs: _Optional[_Union[_configs_pb2.DescribeConfigsRequest, _Mapping]] = ..., describe_replicas: _Optional[_Union[DescribeReplicasRequest, _Mapping]] = ..., describe_events: _Optional[_Union[DescribeEventsRequest, _Mapping]] = ..., create_partitions: _Optional[_Union[CreatePartitionsRequest, _Mapping]] = ..., alter_partition_reassignments: _Optional[_Union[AlterPartitionReassignmentsRequest, _Mapping]] = ..., list_partition_reassignments: _Optional[_Union[ListPartitionReassignmentsRequest, _Mapping]] = ..., incremental_alter_configs: _Optional[_Union[_configs_pb2.IncrementalAlterConfigsRequest, _Mapping]] = ..., elect_leaders: _Optional[_Union[ElectLeadersRequest, _Mapping]] = ...) -> None: ...

class AdminResponse(_message.Message):
    __slots__ = ("correlation_id", "metadata", "create_topics", "delete_topics", "describe_configs", "describe_replicas", "describe_events", "create_partitions", "alter_partition_reassignments", "list_partition_reassignments", "incremental_alter_configs", "elect_leaders", "failure")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_EVENTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    LIST_PARTITION_REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    INCREMENTAL_ALTER_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    metadata: MetadataResponse
    create_topics: CreateTopicsResponse
    delete_topics: DeleteTopicsResponse
    describe_configs: _configs_pb2.DescribeConfigsResponse
    describe_replicas: DescribeReplicasResponse
    describe_events: DescribeEventsResponse
    create_partitions: CreatePartitionsResponse
    alter_partition_reassignments: AlterPartitionReassignmentsResponse
    list_partition_reassignments: ListPartitionReassignmentsResponse
    incremental_alter_configs: _configs_pb2.IncrementalAlterConfigsResponse
    elect_leaders: ElectLeadersResponse
    failure: _failure_pb2.Failure
    def __init__(self, correlation_id: _Optional[int] = ..., metadata: _Optional[_Union[MetadataResponse, _Mapping]] = ..., create_topics: _Optional[_Union[CreateTopicsResponse, _Mapping]] = ..., delete_topics: _Optional[_Union[DeleteTopicsResponse, _Mapping]] = ..., describe_configs: _Optional[_Union[_configs_pb2.DescribeConfigsResponse, _Mapping]] = ..., describe_replicas: _Optional[_Union[DescribeReplicasResponse, _Mapping]] = ..., describe_events: _Optional[_Union[DescribeEventsResponse, _Mapping]] = ..., create_partitions: _Optional[_Union[CreatePartitionsResponse, _Mapping]] = ..., alter_partition_reassignments: _Optional[_Union[AlterPartitionReassignmentsResponse, _Mapping]] = ..., list_partition_reassignments: _Optional[_Union[ListPartitionReassignmentsResponse, _Mapping]] = ..., incremental_alter_configs: _Optional[_Union[_configs_pb2.IncrementalAlterConfigsResponse, _Mapping]] = ..., elect_leaders: _Optional[_Union[ElectLeadersResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

class MetadataRequest(_message.Message):
    __slots__ = ("topics", "all_topics", "allow_auto_topic_creation")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    ALL_TOPICS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_AUTO_TOPIC_CREATION_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    all_topics: bool
    allow_auto_topic_creation: bool
    def __init__(self, topics: _Optional[_Iterable[str]] = ..., all_topics: bool = ..., allow_auto_topic_creation: bool = ...) -> None: ...

class BrokerInfo(_message.Message):
    __slots__ = ("broker_id", "host", "port", "rack")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    host: str
    port: int
    rack: str
    def __init__(self, broker_id: _Optional[int] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., rack: _Optional[str] = ...) -> None: ...

class PartitionMetadata(_message.Message):
    __slots__ = ("partition", "error_code", "leader_id", "leader_epoch", "replicas", "in_sync_replicas", "offline_replicas")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error_code: int
    leader_id: int
    leader_epoch: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    in_sync_replicas: _containers.RepeatedScalarFieldContainer[int]
    offline_replicas: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., error_code: _Optional[int] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., in_sync_replicas: _Optional[_Iterable[int]] = ..., offline_replicas: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicMetadata(_message.Message):
    __slots__ = ("topic", "error_code", "topic_id", "is_internal", "partitions")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    IS_INTERNAL_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    error_code: int
    topic_id: str
    is_internal: bool
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionMetadata]
    def __init__(self, topic: _Optional[str] = ..., error_code: _Optional[int] = ..., topic_id: _Optional[str] = ..., is_internal: bool = ..., partitions: _Optional[_Iterable[_Union[PartitionMetadata, _Mapping]]] = ...) -> None: ...

class MetadataResponse(_message.Message):
    __slots__ = ("cluster_id", "controller_id", "brokers", "topics")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    controller_id: int
    brokers: _containers.RepeatedCompositeFieldContainer[BrokerInfo]
    topics: _containers.RepeatedCompositeFieldContainer[TopicMetadata]
    def __init__(self, cluster_id: _Optional[str] = ..., controller_id: _Optional[int] = ..., brokers: _Optional[_Iterable[_Union[BrokerInfo, _Mapping]]] = ..., topics: _Optional[_Iterable[_Union[TopicMetadata, _Mapping]]] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class ReplicaAssignment(_message.Message):
    __slots__ = ("partition", "broker_ids")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BROKER_IDS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    broker_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., broker_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class NewTopic(_message.Message):
    __slots__ = ("topic", "partitions", "replication_factor", "assignments", "configs")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: int
    replication_factor: int
    assignments: _containers.RepeatedCompositeFieldContainer[ReplicaAssignment]
    configs: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[ReplicaAssignment, _Mapping]]] = ..., configs: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ...) -> None: ...

class CreateTopicsRequest(_message.Message):
    __slots__ = ("timeout_ms", "validate_only", "topics")
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    validate_only: bool
    topics: _containers.RepeatedCompositeFieldContainer[NewTopic]
    def __init__(self, timeout_ms: _Optional[int] = ..., validate_only: bool = ..., topics: _Optional[_Iterable[_Union[NewTopic, _Mapping]]] = ...) -> None: ...

class TopicResult(_message.Message):
    __slots__ = ("topic", "error_code", "error_message", "topic_id", "partitions", "replication_factor", "waits_for")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    topic: str
    error_code: int
    error_message: str
    topic_id: str
    partitions: int
    replication_factor: int
    waits_for: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., topic_id: _Optional[str] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ..., waits_for: _Optional[_Iterable[int]] = ...) -> None: ...

class CreateTopicsResponse(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicResult]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicResult, _Mapping]]] = ...) -> None: ...

class DeleteTopicsRequest(_message.Message):
    __slots__ = ("timeout_ms", "topics")
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, timeout_ms: _Optional[int] = ..., topics: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteTopicsResponse(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicResult]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicResult, _Mapping]]] = ...) -> None: ...

class NewPartitions(_message.Message):
    __slots__ = ("topic", "count", "assignments")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    count: int
    assignments: _containers.RepeatedCompositeFieldContainer[ReplicaAssignment]
    def __init__(self, topic: _Optional[str] = ..., count: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[ReplicaAssignment, _Mapping]]] = ...) -> None: ...

class CreatePartitionsRequest(_message.Message):
    __slots__ = ("timeout_ms", "validate_only", "topics")
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    validate_only: bool
    topics: _containers.RepeatedCompositeFieldContainer[NewPartitions]
    def __init__(self, timeout_ms: _Optional[int] = ..., validate_only: bool = ..., topics: _Optional[_Iterable[_Union[NewPartitions, _Mapping]]] = ...) -> None: ...

class CreatePartitionsResponse(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicResult]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicResult, _Mapping]]] = ...) -> None: ...

class ReassignPartition(_message.Message):
    __slots__ = ("topic", "partition", "replicas", "cancel")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    cancel: bool
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., cancel: bool = ...) -> None: ...

class AlterPartitionReassignmentsRequest(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[ReassignPartition]
    def __init__(self, partitions: _Optional[_Iterable[_Union[ReassignPartition, _Mapping]]] = ...) -> None: ...

class ReassignmentResult(_message.Message):
    __slots__ = ("topic", "partition", "error_code", "error_message")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    error_code: int
    error_message: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., error_code: _Optional[int] = ..., error_message: _Optional[str] = ...) -> None: ...

class AlterPartitionReassignmentsResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "partitions")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    partitions: _containers.RepeatedCompositeFieldContainer[ReassignmentResult]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[ReassignmentResult, _Mapping]]] = ...) -> None: ...

class PartitionName(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class ListPartitionReassignmentsRequest(_message.Message):
    __slots__ = ("all", "partitions")
    ALL_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    all: bool
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionName]
    def __init__(self, all: bool = ..., partitions: _Optional[_Iterable[_Union[PartitionName, _Mapping]]] = ...) -> None: ...

class OngoingReassignment(_message.Message):
    __slots__ = ("topic", "partition", "replicas", "adding_replicas", "removing_replicas")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ADDING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REMOVING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    adding_replicas: _containers.RepeatedScalarFieldContainer[int]
    removing_replicas: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., adding_replicas: _Optional[_Iterable[int]] = ..., removing_replicas: _Optional[_Iterable[int]] = ...) -> None: ...

class ListPartitionReassignmentsResponse(_message.Message):
    __slots__ = ("error_code", "partitions")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    partitions: _containers.RepeatedCompositeFieldContainer[OngoingReassignment]
    def __init__(self, error_code: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[OngoingReassignment, _Mapping]]] = ...) -> None: ...

class ElectLeadersRequest(_message.Message):
    __slots__ = ("election_type", "all", "partitions", "timeout_ms")
    ELECTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    election_type: str
    all: bool
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionName]
    timeout_ms: int
    def __init__(self, election_type: _Optional[str] = ..., all: bool = ..., partitions: _Optional[_Iterable[_Union[PartitionName, _Mapping]]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class ElectionResult(_message.Message):
    __slots__ = ("topic", "partition", "error_code", "error_message")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    error_code: int
    error_message: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., error_code: _Optional[int] = ..., error_message: _Optional[str] = ...) -> None: ...

class ElectLeadersResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "partitions")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    partitions: _containers.RepeatedCompositeFieldContainer[ElectionResult]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[ElectionResult, _Mapping]]] = ...) -> None: ...

class DescribeReplicasRequest(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, topics: _Optional[_Iterable[str]] = ...) -> None: ...

class RemoteReplica(_message.Message):
    __slots__ = ("broker_id", "log_end_offset", "caught_up_ms_ago")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_MS_AGO_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    log_end_offset: int
    caught_up_ms_ago: int
    def __init__(self, broker_id: _Optional[int] = ..., log_end_offset: _Optional[int] = ..., caught_up_ms_ago: _Optional[int] = ...) -> None: ...

class ReplicaDescription(_message.Message):
    __slots__ = ("topic", "partition", "is_leader", "leader_id", "leader_epoch", "partition_epoch", "log_start_offset", "high_watermark", "last_stable_offset", "log_end_offset", "size_bytes", "in_sync_replicas", "followers", "min_in_sync_replicas", "held_back_by", "held_back_because", "offline", "dirty_percent")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    IS_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LAST_STABLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    FOLLOWERS_FIELD_NUMBER: _ClassVar[int]
    MIN_IN_SYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    HELD_BACK_BY_FIELD_NUMBER: _ClassVar[int]
    HELD_BACK_BECAUSE_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_FIELD_NUMBER: _ClassVar[int]
    DIRTY_PERCENT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    is_leader: bool
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    size_bytes: int
    in_sync_replicas: _containers.RepeatedScalarFieldContainer[int]
    followers: _containers.RepeatedCompositeFieldContainer[RemoteReplica]
    min_in_sync_replicas: int
    held_back_by: _containers.RepeatedScalarFieldContainer[int]
    held_back_because: str
    offline: bool
    dirty_percent: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., is_leader: bool = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., last_stable_offset: _Optional[int] = ..., log_end_offset: _Optional[int] = ..., size_bytes: _Optional[int] = ..., in_sync_replicas: _Optional[_Iterable[int]] = ..., followers: _Optional[_Iterable[_Union[RemoteReplica, _Mapping]]] = ..., min_in_sync_replicas: _Optional[int] = ..., held_back_by: _Optional[_Iterable[int]] = ..., held_back_because: _Optional[str] = ..., offline: bool = ..., dirty_percent: _Optional[int] = ...) -> None: ...

class DescribeReplicasResponse(_message.Message):
    __slots__ = ("broker_id", "replicas")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaDescription]
    def __init__(self, broker_id: _Optional[int] = ..., replicas: _Optional[_Iterable[_Union[ReplicaDescription, _Mapping]]] = ...) -> None: ...

class DescribeEventsRequest(_message.Message):
    __slots__ = ("life", "after", "max_events", "max_wait_ms", "topics")
    LIFE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MAX_EVENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    life: int
    after: int
    max_events: int
    max_wait_ms: int
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, life: _Optional[int] = ..., after: _Optional[int] = ..., max_events: _Optional[int] = ..., max_wait_ms: _Optional[int] = ..., topics: _Optional[_Iterable[str]] = ...) -> None: ...

class EventRecord(_message.Message):
    __slots__ = ("sequence", "time_ms", "kind", "cause", "topic", "partition", "details")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    time_ms: int
    kind: str
    cause: str
    topic: str
    partition: int
    details: str
    def __init__(self, sequence: _Optional[int] = ..., time_ms: _Optional[int] = ..., kind: _Optional[str] = ..., cause: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., details: _Optional[str] = ...) -> None: ...

class DescribeEventsResponse(_message.Message):
    __slots__ = ("broker_id", "life", "until", "missed", "forgotten_ms", "events")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_MS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    life: int
    until: int
    missed: int
    forgotten_ms: int
    events: _containers.RepeatedCompositeFieldContainer[EventRecord]
    def __init__(self, broker_id: _Optional[int] = ..., life: _Optional[int] = ..., until: _Optional[int] = ..., missed: _Optional[int] = ..., forgotten_ms: _Optional[int] = ..., events: _Optional[_Iterable[_Union[EventRecord, _Mapping]]] = ...) -> None: ...

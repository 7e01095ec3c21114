from barnabas_proto.v1 import failure_pb2 as _failure_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ControlRequest(_message.Message):
    __slots__ = ("correlation_id", "leader_and_isr", "update_metadata", "stop_replica", "alter_partition", "controlled_shutdown")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_AND_ISR_FIELD_NUMBER: _ClassVar[int]
    UPDATE_METADATA_FIELD_NUMBER: _ClassVar[int]
    STOP_REPLICA_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_FIELD_NUMBER: _ClassVar[int]
    CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    leader_and_isr: LeaderAndIsrRequest
    update_metadata: UpdateMetadataRequest
    stop_replica: StopReplicaRequest
    alter_partition: AlterPartitionRequest
    controlled_shutdown: ControlledShutdownRequest
    def __init__(self, correlation_id: _Optional[int] = ..., leader_and_isr: _Optional[_Union[LeaderAndIsrRequest, _Mapping]] = ..., update_metadata: _Optional[_Union[UpdateMetadataRequest, _Mapping]] = ..., stop_replica: _Optional[_Union[StopReplicaRequest, _Mapping]] = ..., alter_partition: _Optional[_Union[AlterPartitionRequest, _Mapping]] = ..., controlled_shutdown: _Optional[_Union[ControlledShutdownRequest, _Mapping]] = ...) -> None: ...

class ControlResponse(_message.Message):
    __slots__ = ("correlation_id", "leader_and_isr", "update_metadata", "stop_replica", "alter_partition", "controlled_shutdown", "failure")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_AND_ISR_FIELD_NUMBER: _ClassVar[int]
    UPDATE_METADATA_FIELD_NUMBER: _ClassVar[int]
    STOP_REPLICA_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_FIELD_NUMBER: _ClassVar[int]
    CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    leader_and_isr: LeaderAndIsrResponse
    update_metadata: UpdateMetadataResponse
    stop_replica: StopReplicaResponse
    alter_partition: AlterPartitionResponse
    controlled_shutdown: ControlledShutdownResponse
    failure: _failure_pb2.Failure
    def __init__(self, correlation_id: _Optional[int] = ..., leader_and_isr: _Optional[_Union[LeaderAndIsrResponse, _Mapping]] = ..., update_metadata: _Optional[_Union[UpdateMetadataResponse, _Mapping]] = ..., stop_replica: _Optional[_Union[StopReplicaResponse, _Mapping]] = ..., alter_partition: _Optional[_Union[AlterPartitionResponse, _Mapping]] = ..., controlled_shutdown: _Optional[_Union[ControlledShutdownResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

class BrokerEndpoint(_message.Message):
    __slots__ = ("broker_id", "listener", "host", "port", "rack", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    listener: str
    host: str
    port: int
    rack: str
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., listener: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., rack: _Optional[str] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class PartitionError(_message.Message):
    __slots__ = ("topic", "partition", "error_code")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    error_code: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., error_code: _Optional[int] = ...) -> None: ...

class LeaderAndIsrPartition(_message.Message):
    __slots__ = ("topic", "partition", "topic_id", "controller_epoch", "leader", "leader_epoch", "partition_epoch", "in_sync_replicas", "replicas", "adding_replicas", "removing_replicas", "is_new", "leader_recovery_state", "cause", "tell_only", "eligible_leader_replicas")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ADDING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REMOVING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TELL_ONLY_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    topic_id: str
    controller_epoch: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: _containers.RepeatedScalarFieldContainer[int]
    replicas: _containers.RepeatedScalarFieldContainer[int]
    adding_replicas: _containers.RepeatedScalarFieldContainer[int]
    removing_replicas: _containers.RepeatedScalarFieldContainer[int]
    is_new: bool
    leader_recovery_state: int
    cause: str
    tell_only: bool
    eligible_leader_replicas: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., topic_id: _Optional[str] = ..., controller_epoch: _Optional[int] = ..., leader: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., in_sync_replicas: _Optional[_Iterable[int]] = ..., replicas: _Optional[_Iterable[int]] = ..., adding_replicas: _Optional[_Iterable[int]] = ..., removing_replicas: _Optional[_Iterable[int]] = ..., is_new: bool = ..., leader_recovery_state: _Optional[int] = ..., cause: _Optional[str] = ..., tell_only: bool = ..., eligible_leader_replicas: _Optional[_Iterable[int]] = ...) -> None: ...

class LeaderAndIsrRequest(_message.Message):
    __slots__ = ("controller_id", "controller_epoch", "broker_epoch", "partitions", "live_leaders", "number")
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    LIVE_LEADERS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: _containers.RepeatedCompositeFieldContainer[LeaderAndIsrPartition]
    live_leaders: _containers.RepeatedCompositeFieldContainer[BrokerEndpoint]
    number: int
    def __init__(self, controller_id: _Optional[int] = ..., controller_epoch: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[LeaderAndIsrPartition, _Mapping]]] = ..., live_leaders: _Optional[_Iterable[_Union[BrokerEndpoint, _Mapping]]] = ..., number: _Optional[int] = ...) -> None: ...

class HeldRole(_message.Message):
    __slots__ = ("topic", "partition", "leader_epoch", "leader", "in_sync_replicas", "log_epoch", "log_end_offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LOG_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    leader_epoch: int
    leader: int
    in_sync_replicas: _containers.RepeatedScalarFieldContainer[int]
    log_epoch: int
    log_end_offset: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., leader: _Optional[int] = ..., in_sync_replicas: _Optional[_Iterable[int]] = ..., log_epoch: _Optional[int] = ..., log_end_offset: _Optional[int] = ...) -> None: ...

class LeaderAndIsrResponse(_message.Message):
    __slots__ = ("error_code", "partitions", "controller_epoch", "held")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionError]
    controller_epoch: int
    held: _containers.RepeatedCompositeFieldContainer[HeldRole]
    def __init__(self, error_code: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[PartitionError, _Mapping]]] = ..., controller_epoch: _Optional[int] = ..., held: _Optional[_Iterable[_Union[HeldRole, _Mapping]]] = ...) -> None: ...

class UpdateMetadataPartition(_message.Message):
    __slots__ = ("topic", "partition", "topic_id", "controller_epoch", "leader", "leader_epoch", "partition_epoch", "in_sync_replicas", "replicas", "offline_replicas", "eligible_leader_replicas")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    topic_id: str
    controller_epoch: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: _containers.RepeatedScalarFieldContainer[int]
    replicas: _containers.RepeatedScalarFieldContainer[int]
    offline_replicas: _containers.RepeatedScalarFieldContainer[int]
    eligible_leader_replicas: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., topic_id: _Optional[str] = ..., controller_epoch: _Optional[int] = ..., leader: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., in_sync_replicas: _Optional[_Iterable[int]] = ..., replicas: _Optional[_Iterable[int]] = ..., offline_replicas: _Optional[_Iterable[int]] = ..., eligible_leader_replicas: _Optional[_Iterable[int]] = ...) -> None: ...

class SuspectedBroker(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class UpdateMetadataRequest(_message.Message):
    __slots__ = ("controller_id", "controller_epoch", "broker_epoch", "partitions", "live_brokers", "suspected_brokers", "shutting_down_brokers", "names_all_topics", "other_topics", "number", "partitions_without_state")
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    LIVE_BROKERS_FIELD_NUMBER: _ClassVar[int]
    SUSPECTED_BROKERS_FIELD_NUMBER: _ClassVar[int]
    SHUTTING_DOWN_BROKERS_FIELD_NUMBER: _ClassVar[int]
    NAMES_ALL_TOPICS_FIELD_NUMBER: _ClassVar[int]
    OTHER_TOPICS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_WITHOUT_STATE_FIELD_NUMBER: _ClassVar[int]
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: _containers.RepeatedCompositeFieldContainer[UpdateMetadataPartition]
    live_brokers: _containers.RepeatedCompositeFieldContainer[BrokerEndpoint]
    suspected_brokers: _containers.RepeatedCompositeFieldContainer[SuspectedBroker]
    shutting_down_brokers: _containers.RepeatedScalarFieldContainer[int]
    names_all_topics: bool
    other_topics: _containers.RepeatedScalarFieldContainer[str]
    number: int
    partitions_without_state: _containers.RepeatedCompositeFieldContainer[UpdateMetadataPartition]
    def __init__(self, controller_id: _Optional[int] = ..., controller_epoch: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[UpdateMetadataPartition, _Mapping]]] = ..., live_brokers: _Optional[_Iterable[_Union[BrokerEndpoint, _Mapping]]] = ..., suspected_brokers: _Optional[_Iterable[_Union[SuspectedBroker, _Mapping]]] = ..., shutting_down_brokers: _Optional[_Iterable[int]] = ..., names_all_topics: bool = ..., other_topics: _Optional[_Iterable[str]] = ..., number: _Optional[int] = ..., partitions_without_state: _Optional[_Iterable[_Union[UpdateMetadataPartition, _Mapping]]] = ...) -> None: ...

class UpdateMetadataResponse(_message.Message):
    __slots__ = ("error_code", "controller_epoch")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    controller_epoch: int
    def __init__(self, error_code: _Optional[int] = ..., controller_epoch: _Optional[int] = ...) -> None: ...

class StopReplicaPartition(_message.Message):
    __slots__ = ("topic", "partition", "leader_epoch", "delete_partition", "cause", "topic_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DELETE_PARTITION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    leader_epoch: int
    delete_partition: bool
    cause: str
    topic_id: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., delete_partition: bool = ..., cause: _Optional[str] = ..., topic_id: _Optional[str] = ...) -> None: ...

class StopReplicaRequest(_message.Message):
    __slots__ = ("controller_id", "controller_epoch", "broker_epoch", "partitions", "number")
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: _containers.RepeatedCompositeFieldContainer[StopReplicaPartition]
    number: int
    def __init__(self, controller_id: _Optional[int] = ..., controller_epoch: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[StopReplicaPartition, _Mapping]]] = ..., number: _Optional[int] = ...) -> None: ...

class StopReplicaResponse(_message.Message):
    __slots__ = ("error_code", "partitions", "controller_epoch")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionError]
    controller_epoch: int
    def __init__(self, error_code: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[PartitionError, _Mapping]]] = ..., controller_epoch: _Optional[int] = ...) -> None: ...

class AlterPartitionItem(_message.Message):
    __slots__ = ("topic", "partition", "leader_epoch", "partition_epoch", "new_isr", "leader_recovery_state", "cause", "new_isr_epochs", "topic_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    NEW_ISR_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    NEW_ISR_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: _containers.RepeatedScalarFieldContainer[int]
    leader_recovery_state: int
    cause: str
    new_isr_epochs: _containers.RepeatedScalarFieldContainer[int]
    topic_id: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., new_isr: _Optional[_Iterable[int]] = ..., leader_recovery_state: _Optional[int] = ..., cause: _Optional[str] = ..., new_isr_epochs: _Optional[_Iterable[int]] = ..., topic_id: _Optional[str] = ...) -> None: ...

class AlterPartitionRequest(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "partitions")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    partitions: _containers.RepeatedCompositeFieldContainer[AlterPartitionItem]
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[AlterPartitionItem, _Mapping]]] = ...) -> None: ...

class AlteredPartition(_message.Message):
    __slots__ = ("topic", "partition", "error_code", "leader_id", "leader_epoch", "partition_epoch", "in_sync_replicas", "leader_recovery_state")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    error_code: int
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: _containers.RepeatedScalarFieldContainer[int]
    leader_recovery_state: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., error_code: _Optional[int] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., in_sync_replicas: _Optional[_Iterable[int]] = ..., leader_recovery_state: _Optional[int] = ...) -> None: ...

class AlterPartitionResponse(_message.Message):
    __slots__ = ("error_code", "partitions")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    partitions: _containers.RepeatedCompositeFieldContainer[AlteredPartition]
    def __init__(self, error_code: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[AlteredPartition, _Mapping]]] = ...) -> None: ...

class ControlledShutdownRequest(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class ControlledShutdownResponse(_message.Message):
    __slots__ = ("error_code", "remaining")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    remaining: _containers.RepeatedCompositeFieldContainer[PartitionError]
    def __init__(self, error_code: _Optional[int] = ..., remaining: _Optional[_Iterable[_Union[PartitionError, _Mapping]]] = ...) -> None: ...

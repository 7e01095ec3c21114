from barnabas_proto.v1 import failure_pb2 as _failure_pb2
from barnabas_proto.v1 import fetch_pb2 as _fetch_pb2
from barnabas_proto.v1 import offsets_pb2 as _offsets_pb2
from barnabas_proto.v1 import transactions_pb2 as _transactions_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DataRequest(_message.Message):
    __slots__ = ("correlation_id", "produce", "fetch", "list_offsets", "offset_for_leader_epoch", "describe_producers", "write_txn_markers")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCE_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    LIST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FOR_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    WRITE_TXN_MARKERS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    produce: ProduceRequest
    fetch: _fetch_pb2.FetchRequest
    list_offsets: _offsets_pb2.ListOffsetsRequest
    offset_for_leader_epoch: _offsets_pb2.OffsetForLeaderEpochRequest
    describe_producers: _transactions_pb2.DescribeProducersRequest
    write_txn_markers: _transactions_pb2.WriteTxnMarkersRequest
    def __init__(self, correlation_id: _Optional[int] = ..., produce: _Optional[_Union[ProduceRequest, _Mapping]] = ..., fetch: _Optional[_Union[_fetch_pb2.FetchRequest, _Mapping]] = ..., list_offsets: _Optional[_Union[_offsets_pb2.ListOffsetsRequest, _Mapping]] = ..., offset_for_leader_epoch: _Optional[_Union[_offsets_pb2.OffsetForLeaderEpochRequest, _Mapping]] = ..., describe_producers: _Optional[_Union[_transactions_pb2.DescribeProducersRequest, _Mapping]] = ..., write_txn_markers: _Optional[_Union[_transactions_pb2.WriteTxnMarkersRequest, _Mapping]] = ...) -> None: ...

class DataResponse(_message.Message):
    __slots__ = ("correlation_id", "produce", "fetch", "list_offsets", "offset_for_leader_epoch", "describe_producers", "write_txn_markers", "failure")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCE_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    LIST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FOR_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    WRITE_TXN_MARKERS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    produce: ProduceResponse
    fetch: _fetch_pb2.FetchResponse
    list_offsets: _offsets_pb2.ListOffsetsResponse
    offset_for_leader_epoch: _offsets_pb2.OffsetForLeaderEpochResponse
    describe_producers: _transactions_pb2.DescribeProducersResponse
    write_txn_markers: _transactions_pb2.WriteTxnMarkersResponse
    failure: _failure_pb2.Failure
    def __init__(self, correlation_id: _Optional[int] = ..., produce: _Optional[_Union[ProduceResponse, _Mapping]] = ..., fetch: _Optional[_Union[_fetch_pb2.FetchResponse, _Mapping]] = ..., list_offsets: _Optional[_Union[_offsets_pb2.ListOffsetsResponse, _Mapping]] = ..., offset_for_leader_epoch: _Optional[_Union[_offsets_pb2.OffsetForLeaderEpochResponse, _Mapping]] = ..., describe_producers: _Optional[_Union[_transactions_pb2.DescribeProducersResponse, _Mapping]] = ..., write_txn_markers: _Optional[_Union[_transactions_pb2.WriteTxnMarkersResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

class ProducePartition(_message.Message):
    __slots__ = ("topic", "partition", "records")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    records: bytes
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., records: _Optional[bytes] = ...) -> None: ...

class ProduceRequest(_message.Message):
    __slots__ = ("acks", "timeout_ms", "partitions", "transactional_id")
    ACKS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    acks: int
    timeout_ms: int
    partitions: _containers.RepeatedCompositeFieldContainer[ProducePartition]
    transactional_id: str
    def __init__(self, acks: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[ProducePartition, _Mapping]]] = ..., transactional_id: _Optional[str] = ...) -> None: ...

class ProducedPartition(_message.Message):
    __slots__ = ("topic", "partition", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "error_message", "current_leader_id", "current_leader_epoch")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_APPEND_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    error_message: str
    current_leader_id: int
    current_leader_epoch: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., error_code: _Optional[int] = ..., base_offset: _Optional[int] = ..., log_append_time_ms: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., error_message: _Optional[str] = ..., current_leader_id: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ...) -> None: ...

class ProduceResponse(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[ProducedPartition]
    def __init__(self, partitions: _Optional[_Iterable[_Union[ProducedPartition, _Mapping]]] = ...) -> None: ...

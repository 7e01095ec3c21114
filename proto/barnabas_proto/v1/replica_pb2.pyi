from barnabas_proto.v1 import failure_pb2 as _failure_pb2
from barnabas_proto.v1 import fetch_pb2 as _fetch_pb2
from barnabas_proto.v1 import offsets_pb2 as _offsets_pb2
from barnabas_proto.v1 import transactions_pb2 as _transactions_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReplicaRequest(_message.Message):
    __slots__ = ("correlation_id", "fetch", "list_offsets", "offset_for_leader_epoch", "write_txn_markers")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    LIST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FOR_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    WRITE_TXN_MARKERS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    fetch: _fetch_pb2.FetchRequest
    list_offsets: _offsets_pb2.ListOffsetsRequest
    offset_for_leader_epoch: _offsets_pb2.OffsetForLeaderEpochRequest
    write_txn_markers: _transactions_pb2.WriteTxnMarkersRequest
    def __init__(self, correlation_id: _Optional[int] = ..., fetch: _Optional[_Union[_fetch_pb2.FetchRequest, _Mapping]] = ..., list_offsets: _Optional[_Union[_offsets_pb2.ListOffsetsRequest, _Mapping]] = ..., offset_for_leader_epoch: _Optional[_Union[_offsets_pb2.OffsetForLeaderEpochRequest, _Mapping]] = ..., write_txn_markers: _Optional[_Union[_transactions_pb2.WriteTxnMarkersRequest, _Mapping]] = ...) -> None: ...

class ReplicaResponse(_message.Message):
    __slots__ = ("correlation_id", "fetch", "list_offsets", "offset_for_leader_epoch", "write_txn_markers", "failure")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    LIST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FOR_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    WRITE_TXN_MARKERS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    fetch: _fetch_pb2.FetchResponse
    list_offsets: _offsets_pb2.ListOffsetsResponse
    offset_for_leader_epoch: _offsets_pb2.OffsetForLeaderEpochResponse
    write_txn_markers: _transactions_pb2.WriteTxnMarkersResponse
    failure: _failure_pb2.Failure
    def __init__(self, correlation_id: _Optional[int] = ..., fetch: _Optional[_Union[_fetch_pb2.FetchResponse, _Mapping]] = ..., list_offsets: _Optional[_Union[_offsets_pb2.ListOffsetsResponse, _Mapping]] = ..., offset_for_leader_epoch: _Optional[_Union[_offsets_pb2.OffsetForLeaderEpochResponse, _Mapping]] = ..., write_txn_markers: _Optional[_Union[_transactions_pb2.WriteTxnMarkersResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

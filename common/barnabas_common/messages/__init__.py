"""The requests and responses as plain dataclasses, one file for each subject.

They do not depend on the transport: `barnabas_common.transport.codec` converts them to protobuf and
back, field by field under the same names (`proto/barnabas/v1/`). Offsets, epochs and sizes (in
bytes) are ints; -1 means unknown or none. An `error_code` is a number of `ErrorCode`, 0 for
success. `SERVICES` maps each request of a service to its response.
"""

from typing import Any

from barnabas_common.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas_common.messages.control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas_common.messages.elections import ElectLeadersRequest, ElectLeadersResponse
from barnabas_common.messages.events import DescribeEventsRequest, DescribeEventsResponse
from barnabas_common.messages.fetch import FetchRequest, FetchResponse
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.messages.offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas_common.messages.produce import ProduceRequest, ProduceResponse
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas_common.messages.replicas import DescribeReplicasRequest, DescribeReplicasResponse
from barnabas_common.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas_common.runtime.network import Service

__all__ = [
    "SERVICES",
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "ControlledShutdownRequest",
    "ControlledShutdownResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeEventsRequest",
    "DescribeEventsResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeReplicasRequest",
    "DescribeReplicasResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
]

SERVICES: dict[Service, dict[type[Any], type[Any]]] = {
    Service.DATA: {
        ProduceRequest: ProduceResponse,
        FetchRequest: FetchResponse,
        ListOffsetsRequest: ListOffsetsResponse,
        OffsetForLeaderEpochRequest: OffsetForLeaderEpochResponse,
    },
    Service.ADMIN: {
        MetadataRequest: MetadataResponse,
        CreateTopicsRequest: CreateTopicsResponse,
        DeleteTopicsRequest: DeleteTopicsResponse,
        DescribeConfigsRequest: DescribeConfigsResponse,
        IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse,
        ElectLeadersRequest: ElectLeadersResponse,
        DescribeReplicasRequest: DescribeReplicasResponse,
        DescribeEventsRequest: DescribeEventsResponse,
        CreatePartitionsRequest: CreatePartitionsResponse,
        AlterPartitionReassignmentsRequest: AlterPartitionReassignmentsResponse,
        ListPartitionReassignmentsRequest: ListPartitionReassignmentsResponse,
    },
    Service.COORDINATOR: {
        FindCoordinatorRequest: FindCoordinatorResponse,
        JoinGroupRequest: JoinGroupResponse,
        SyncGroupRequest: SyncGroupResponse,
        HeartbeatRequest: HeartbeatResponse,
        LeaveGroupRequest: LeaveGroupResponse,
        OffsetCommitRequest: OffsetCommitResponse,
        OffsetFetchRequest: OffsetFetchResponse,
        OffsetDeleteRequest: OffsetDeleteResponse,
        ListGroupsRequest: ListGroupsResponse,
        DescribeGroupsRequest: DescribeGroupsResponse,
        DeleteGroupsRequest: DeleteGroupsResponse,
        InitProducerIdRequest: InitProducerIdResponse,
    },
    Service.REPLICA: {
        FetchRequest: FetchResponse,
        ListOffsetsRequest: ListOffsetsResponse,
        OffsetForLeaderEpochRequest: OffsetForLeaderEpochResponse,
    },
    Service.CONTROL: {
        LeaderAndIsrRequest: LeaderAndIsrResponse,
        UpdateMetadataRequest: UpdateMetadataResponse,
        StopReplicaRequest: StopReplicaResponse,
        AlterPartitionRequest: AlterPartitionResponse,
        ControlledShutdownRequest: ControlledShutdownResponse,
    },
}

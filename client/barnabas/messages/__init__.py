"""The requests and responses as plain dataclasses, one file a subject.

They know nothing of how they travel: `barnabas.messages.codec` turns them into protobuf and back,
field by field under the same names (`proto/barnabas/v1/`). Offsets, epochs and sizes are ints;
-1 means unknown or none. `SERVICES` says which request goes through which door and what answers it.
"""

from typing import Any

from barnabas.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.messages.control import (
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
from barnabas.messages.elections import ElectLeadersRequest, ElectLeadersResponse
from barnabas.messages.events import DescribeEventsRequest, DescribeEventsResponse
from barnabas.messages.fetch import FetchRequest, FetchResponse
from barnabas.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.messages.offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas.messages.produce import ProduceRequest, ProduceResponse
from barnabas.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.messages.replicas import DescribeReplicasRequest, DescribeReplicasResponse
from barnabas.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.runtime.network import Service

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
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeEventsRequest",
    "DescribeEventsResponse",
    "DescribeReplicasRequest",
    "DescribeReplicasResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "FetchRequest",
    "FetchResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "StopReplicaRequest",
    "StopReplicaResponse",
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

"""Which handler serves which request, and through which door.

Every listener offers Data and Admin. Replica and Control are offered on the inter-broker listener
only, so that no client can move a high watermark or appoint a leader.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from barnabas.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeEventsRequest,
    DescribeReplicasRequest,
    ElectLeadersRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from barnabas.runtime import Handler, Message, Peer, Service

from barnabas_broker.api.alter_partition import handle_alter_partition
from barnabas_broker.api.controlled_shutdown import handle_controlled_shutdown
from barnabas_broker.api.create_partitions import handle_create_partitions
from barnabas_broker.api.create_topics import handle_create_topics
from barnabas_broker.api.delete_topics import handle_delete_topics
from barnabas_broker.api.describe_configs import handle_describe_configs
from barnabas_broker.api.describe_events import handle_describe_events
from barnabas_broker.api.describe_replicas import handle_describe_replicas
from barnabas_broker.api.elect_leaders import handle_elect_leaders
from barnabas_broker.api.fetch import handle_fetch, handle_replica_fetch
from barnabas_broker.api.incremental_alter_configs import handle_incremental_alter_configs
from barnabas_broker.api.leader_and_isr import handle_leader_and_isr
from barnabas_broker.api.list_offsets import handle_list_offsets, handle_replica_list_offsets
from barnabas_broker.api.metadata import handle_metadata
from barnabas_broker.api.offset_for_leader_epoch import handle_offset_for_leader_epoch
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.produce import handle_produce
from barnabas_broker.api.reassignments import (
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
)
from barnabas_broker.api.stop_replica import handle_stop_replica
from barnabas_broker.api.update_metadata import handle_update_metadata

Handle = Callable[[BrokerParts, Any, Peer], Awaitable[Message | None]]

HANDLERS: dict[Service, dict[type[Any], Handle]] = {
    Service.DATA: {
        ProduceRequest: handle_produce,
        FetchRequest: handle_fetch,
        ListOffsetsRequest: handle_list_offsets,
        OffsetForLeaderEpochRequest: handle_offset_for_leader_epoch,
    },
    Service.ADMIN: {
        MetadataRequest: handle_metadata,
        CreateTopicsRequest: handle_create_topics,
        DeleteTopicsRequest: handle_delete_topics,
        DescribeConfigsRequest: handle_describe_configs,
        IncrementalAlterConfigsRequest: handle_incremental_alter_configs,
        ElectLeadersRequest: handle_elect_leaders,
        DescribeReplicasRequest: handle_describe_replicas,
        DescribeEventsRequest: handle_describe_events,
        CreatePartitionsRequest: handle_create_partitions,
        AlterPartitionReassignmentsRequest: handle_alter_partition_reassignments,
        ListPartitionReassignmentsRequest: handle_list_partition_reassignments,
    },
    Service.REPLICA: {
        FetchRequest: handle_replica_fetch,
        ListOffsetsRequest: handle_replica_list_offsets,
        OffsetForLeaderEpochRequest: handle_offset_for_leader_epoch,
    },
    Service.CONTROL: {
        LeaderAndIsrRequest: handle_leader_and_isr,
        UpdateMetadataRequest: handle_update_metadata,
        StopReplicaRequest: handle_stop_replica,
        AlterPartitionRequest: handle_alter_partition,
        ControlledShutdownRequest: handle_controlled_shutdown,
    },
}


def handlers_of(parts: BrokerParts, *, inter_broker: bool) -> Mapping[Service, Handler]:
    """The services of one listener, each as a function from a request to its response."""
    offered = list(Service) if inter_broker else [Service.DATA, Service.ADMIN]
    return {service: _dispatch(parts, HANDLERS[service]) for service in offered}


def _dispatch(parts: BrokerParts, table: dict[type[Any], Handle]) -> Handler:
    async def handle(request: Message, peer: Peer) -> Message | None:
        return await table[type(request)](parts, request, peer)

    return handle

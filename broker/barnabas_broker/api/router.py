"""Which function answers which request, and on which listener.

Every listener offers Data, Admin and Coordinator. Replica and Control are offered on the
inter-broker listener only, so that no client can move a high watermark or change a leader.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeEventsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeReplicasRequest,
    DescribeTransactionsRequest,
    ElectLeadersRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaderAndIsrRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListTransactionsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    StopReplicaRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
    UpdateMetadataRequest,
    WriteTxnMarkersRequest,
)
from barnabas_common.runtime import Handler, Message, Peer, Service

from barnabas_broker.api.coordinator.find_coordinator import handle_find_coordinator
from barnabas_broker.api.coordinator.groups import (
    handle_delete_groups,
    handle_describe_groups,
    handle_list_groups,
)
from barnabas_broker.api.coordinator.init_producer_id import handle_init_producer_id
from barnabas_broker.api.coordinator.membership import handle_join_group
from barnabas_broker.api.coordinator.offsets import (
    handle_offset_commit,
    handle_offset_delete,
    handle_offset_fetch,
)
from barnabas_broker.api.coordinator.transactions import (
    handle_add_offsets_to_txn,
    handle_add_partitions_to_txn,
    handle_describe_transactions,
    handle_list_transactions,
)
from barnabas_broker.api.create_partitions import handle_create_partitions
from barnabas_broker.api.create_topics import handle_create_topics
from barnabas_broker.api.delete_topics import handle_delete_topics
from barnabas_broker.api.describe_configs import handle_describe_configs
from barnabas_broker.api.describe_events import handle_describe_events
from barnabas_broker.api.elect_leaders import handle_elect_leaders
from barnabas_broker.api.fetch import handle_fetch, handle_replica_fetch
from barnabas_broker.api.incremental_alter_configs import handle_incremental_alter_configs
from barnabas_broker.api.list_offsets import handle_list_offsets
from barnabas_broker.api.metadata import handle_metadata
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.transactions.describe_producers import handle_describe_producers
from barnabas_broker.api.transactions.write_txn_markers import (
    handle_abort_by_administrator,
    handle_write_txn_markers,
)
from barnabas_broker.api.update_metadata import handle_update_metadata

Handle = Callable[[BrokerParts, Any, Peer], Awaitable[Message | None]]


def _by_controller(response: Callable[[int], Message]) -> Handle:
    """Have the controller of this broker answer; NOT_CONTROLLER while there is none."""

    async def handle(parts: BrokerParts, request: Message, _peer: Peer) -> Message:
        controller = parts.controller()
        if controller is None:
            return response(ErrorCode.NOT_CONTROLLER)
        return await controller.handle(request)

    return handle


def _when_registered(handle: Handle) -> Handle:
    """Answer a controller's request only once the broker has its first broker epoch.

    Before that it cannot distinguish requests for itself from requests for an earlier process at
    the same address.
    """

    async def wait_and_handle(parts: BrokerParts, request: Any, peer: Peer) -> Message | None:
        await parts.registered.wait()
        return await handle(parts, request, peer)

    return wait_and_handle


HANDLERS: dict[Service, dict[type[Any], Handle]] = {
    Service.DATA: {
        ProduceRequest: lambda parts, request, _: parts.replica_manager.produces.produce(request),
        FetchRequest: handle_fetch,
        ListOffsetsRequest: handle_list_offsets,
        OffsetForLeaderEpochRequest: (
            lambda parts, request, _: parts.replica_manager.offsets.for_leader_epoch(request)
        ),
        DescribeProducersRequest: handle_describe_producers,
        WriteTxnMarkersRequest: handle_abort_by_administrator,
    },
    Service.ADMIN: {
        MetadataRequest: handle_metadata,
        CreateTopicsRequest: handle_create_topics,
        DeleteTopicsRequest: handle_delete_topics,
        DescribeConfigsRequest: handle_describe_configs,
        IncrementalAlterConfigsRequest: handle_incremental_alter_configs,
        ElectLeadersRequest: handle_elect_leaders,
        DescribeReplicasRequest: (
            lambda parts, request, _: parts.replica_manager.describe_replicas(request)
        ),
        DescribeEventsRequest: handle_describe_events,
        CreatePartitionsRequest: handle_create_partitions,
        AlterPartitionReassignmentsRequest: _by_controller(AlterPartitionReassignmentsResponse),
        ListPartitionReassignmentsRequest: _by_controller(ListPartitionReassignmentsResponse),
    },
    Service.COORDINATOR: {
        FindCoordinatorRequest: handle_find_coordinator,
        JoinGroupRequest: handle_join_group,
        SyncGroupRequest: lambda parts, request, _: parts.groups.sync_group(request),
        HeartbeatRequest: lambda parts, request, _: parts.groups.heartbeat(request),
        LeaveGroupRequest: lambda parts, request, _: parts.groups.leave_group(request),
        OffsetCommitRequest: handle_offset_commit,
        OffsetFetchRequest: handle_offset_fetch,
        OffsetDeleteRequest: handle_offset_delete,
        ListGroupsRequest: handle_list_groups,
        DescribeGroupsRequest: handle_describe_groups,
        DeleteGroupsRequest: handle_delete_groups,
        InitProducerIdRequest: handle_init_producer_id,
        AddPartitionsToTxnRequest: handle_add_partitions_to_txn,
        AddOffsetsToTxnRequest: handle_add_offsets_to_txn,
        EndTxnRequest: lambda parts, request, _: parts.transactions.end(request),
        DescribeTransactionsRequest: handle_describe_transactions,
        ListTransactionsRequest: handle_list_transactions,
        TxnOffsetCommitRequest: (
            lambda parts, request, _: parts.groups.txn_offsets.commit(request)
        ),
    },
    Service.REPLICA: {
        FetchRequest: handle_replica_fetch,
        ListOffsetsRequest: (
            lambda parts, request, _: parts.replica_manager.offsets.list_offsets(request)
        ),
        OffsetForLeaderEpochRequest: (
            lambda parts, request, _: parts.replica_manager.offsets.for_leader_epoch(request)
        ),
        WriteTxnMarkersRequest: handle_write_txn_markers,
    },
    Service.CONTROL: {
        LeaderAndIsrRequest: _when_registered(
            lambda parts, request, _: parts.replica_manager.become_leader_or_follower(request)
        ),
        UpdateMetadataRequest: _when_registered(handle_update_metadata),
        StopReplicaRequest: _when_registered(
            lambda parts, request, _: parts.replica_manager.roles.stop_replicas(request)
        ),
        AlterPartitionRequest: _by_controller(AlterPartitionResponse),
        ControlledShutdownRequest: _by_controller(ControlledShutdownResponse),
    },
}

FOR_CLIENTS = (Service.DATA, Service.ADMIN, Service.COORDINATOR)


def handlers_of(parts: BrokerParts, *, inter_broker: bool) -> Mapping[Service, Handler]:
    """The services of one listener, each as a function from a request to its response."""
    offered = HANDLERS if inter_broker else FOR_CLIENTS
    return {service: _dispatch(parts, HANDLERS[service]) for service in offered}


def _dispatch(parts: BrokerParts, table: dict[type[Any], Handle]) -> Handler:
    def handle(request: Message, peer: Peer) -> Awaitable[Message | None]:
        return table[type(request)](parts, request, peer)

    return handle

"""AlterPartitionReassignments and ListPartitionReassignments: a matter of the controller's."""

from barnabas.error_code import ErrorCode
from barnabas.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_alter_partition_reassignments(
    parts: BrokerParts, request: AlterPartitionReassignmentsRequest, peer: Peer
) -> AlterPartitionReassignmentsResponse:
    controller = parts.controller()
    if controller is None:
        return AlterPartitionReassignmentsResponse(ErrorCode.NOT_CONTROLLER)
    return await controller.alter_partition_reassignments(request)


async def handle_list_partition_reassignments(
    parts: BrokerParts, request: ListPartitionReassignmentsRequest, peer: Peer
) -> ListPartitionReassignmentsResponse:
    controller = parts.controller()
    if controller is None:
        return ListPartitionReassignmentsResponse(ErrorCode.NOT_CONTROLLER)
    return await controller.list_partition_reassignments(request)

"""AlterPartition: a leader asks the controller for a new ISR (KIP-497)."""

from barnabas.error_code import ErrorCode
from barnabas.messages.control import AlterPartitionRequest, AlterPartitionResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_alter_partition(
    parts: BrokerParts, request: AlterPartitionRequest, peer: Peer
) -> AlterPartitionResponse:
    controller = parts.controller()
    if controller is None:
        return AlterPartitionResponse(ErrorCode.NOT_CONTROLLER)
    return await controller.alter_partition(request)

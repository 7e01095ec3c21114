"""ControlledShutdown: a broker about to stop asks that its leaderships be moved first."""

from barnabas.error_code import ErrorCode
from barnabas.messages.control import ControlledShutdownRequest, ControlledShutdownResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_controlled_shutdown(
    parts: BrokerParts, request: ControlledShutdownRequest, peer: Peer
) -> ControlledShutdownResponse:
    controller = parts.controller()
    if controller is None:
        return ControlledShutdownResponse(ErrorCode.NOT_CONTROLLER)
    return await controller.controlled_shutdown(request)

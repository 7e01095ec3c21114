"""UpdateMetadata: the controller tells every broker who lives and who leads."""

from barnabas.messages.control import UpdateMetadataRequest, UpdateMetadataResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_update_metadata(
    parts: BrokerParts, request: UpdateMetadataRequest, peer: Peer
) -> UpdateMetadataResponse:
    await parts.registered.wait()
    response = parts.replica_manager.update_metadata(request)
    epoch = parts.metadata_cache.suspects.get(parts.broker_id)
    if not response.error_code and epoch is not None:
        why = f"controller {request.controller_id} suspects this broker to be dead"
        parts.register_anew(epoch, why)
    return response

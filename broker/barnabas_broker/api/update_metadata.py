"""UpdateMetadata: the controller tells every broker who lives and who leads."""

from barnabas.messages.control import UpdateMetadataRequest, UpdateMetadataResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_update_metadata(
    parts: BrokerParts, request: UpdateMetadataRequest, peer: Peer
) -> UpdateMetadataResponse:
    await parts.registered.wait()
    return parts.replica_manager.update_metadata(request)

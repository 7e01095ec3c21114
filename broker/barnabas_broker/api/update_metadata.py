"""UpdateMetadata: the controller sends every broker the registered brokers and the leaders."""

from barnabas_common.messages.control import UpdateMetadataRequest, UpdateMetadataResponse
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_update_metadata(
    parts: BrokerParts, request: UpdateMetadataRequest, peer: Peer
) -> UpdateMetadataResponse:
    cache = parts.metadata_cache
    deleted, missed = cache.deleted_by(request), cache.missed_by(request)
    replaced = cache.replaced_by(request)
    response = parts.replica_manager.update_metadata(request)
    if not response.error_code:
        parts.transactions.metadata_updated()
        parts.groups.metadata_updated(deleted, missed, replaced)
    epoch = cache.suspects.get(parts.broker_id)
    if not response.error_code and epoch is not None:
        why = f"controller {request.controller_id} suspects this broker to be dead"
        parts.reregister(epoch, why)
    return response

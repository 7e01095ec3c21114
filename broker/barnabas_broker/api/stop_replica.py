"""StopReplica: the controller ends a replica here, and may have its log deleted."""

from barnabas.messages.control import StopReplicaRequest, StopReplicaResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_stop_replica(
    parts: BrokerParts, request: StopReplicaRequest, peer: Peer
) -> StopReplicaResponse:
    await parts.registered.wait()
    return await parts.replica_manager.stop_replicas(request)

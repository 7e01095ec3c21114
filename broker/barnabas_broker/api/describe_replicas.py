"""DescribeReplicas: this broker's own replicas, with their LEO, HW and what it sees of others."""

from barnabas.messages.replicas import DescribeReplicasRequest, DescribeReplicasResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_describe_replicas(
    parts: BrokerParts, request: DescribeReplicasRequest, peer: Peer
) -> DescribeReplicasResponse:
    return DescribeReplicasResponse(
        parts.broker_id, parts.replica_manager.describe_replicas(request.topics)
    )

"""Fetch: consumers read committed batches, followers read up to the log's end.

The two come through different doors: a consumer's request that carries a replica id is refused,
for a fetch with a replica id moves the high watermark.
"""

from barnabas.error_code import ErrorCode
from barnabas.messages.fetch import FetchRequest, FetchResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_fetch(parts: BrokerParts, request: FetchRequest, peer: Peer) -> FetchResponse:
    """A consumer's fetch: never above the high watermark."""
    if request.replica_id >= 0:
        return FetchResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await parts.replica_manager.fetch(request)


async def handle_replica_fetch(
    parts: BrokerParts, request: FetchRequest, peer: Peer
) -> FetchResponse:
    """A follower's fetch: tells the leader how far the follower's log reaches."""
    if request.replica_id < 0:
        return FetchResponse(ErrorCode.INVALID_REQUEST)
    return await parts.replica_manager.replica_fetch(request)

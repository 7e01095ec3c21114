"""Fetch: consumers read committed batches, followers read up to the log end.

The two use different services. A consumer's request with a replica id is refused because a fetch
with a replica id moves the high watermark.
"""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchRequest, FetchResponse
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_fetch(parts: BrokerParts, request: FetchRequest, peer: Peer) -> FetchResponse:
    """Answer a consumer's fetch."""
    if request.replica_id >= 0:
        return FetchResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await parts.replica_manager.consumer_fetches.fetch(request)


async def handle_replica_fetch(
    parts: BrokerParts, request: FetchRequest, peer: Peer
) -> FetchResponse:
    """Answer a follower's fetch, which also reports how far the follower's log reaches."""
    if request.replica_id < 0:
        return FetchResponse(ErrorCode.INVALID_REQUEST)
    return await parts.replica_manager.follower_fetches.fetch(request)

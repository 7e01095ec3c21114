"""OffsetCommit, OffsetFetch and OffsetDelete, in the storage that the client names."""

from barnabas_common.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_offset_commit(
    parts: BrokerParts, request: OffsetCommitRequest, peer: Peer
) -> OffsetCommitResponse:
    return await parts.groups.offsets.commit(request)


async def handle_offset_fetch(
    parts: BrokerParts, request: OffsetFetchRequest, peer: Peer
) -> OffsetFetchResponse:
    offsets = parts.groups.offsets
    return OffsetFetchResponse(
        [offsets.fetch(group, request.require_stable) for group in request.groups]
    )


async def handle_offset_delete(
    parts: BrokerParts, request: OffsetDeleteRequest, peer: Peer
) -> OffsetDeleteResponse:
    return await parts.groups.offsets.delete(request)

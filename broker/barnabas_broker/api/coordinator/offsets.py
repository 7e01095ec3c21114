"""OffsetCommit, OffsetFetch and OffsetDelete, in the storage that the client names."""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    KAFKA_STORAGE,
    ZOOKEEPER_STORAGE,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResult,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchGroupResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas_common.runtime import Peer

from barnabas_broker.api.coordinator import zookeeper_offsets
from barnabas_broker.api.parts import BrokerParts


def is_kafka(storage: str) -> bool:
    """Whether the storage is `__consumer_offsets`; a client may leave it out."""
    return storage in ("", KAFKA_STORAGE)


async def handle_offset_commit(
    parts: BrokerParts, request: OffsetCommitRequest, peer: Peer
) -> OffsetCommitResponse:
    if request.storage == ZOOKEEPER_STORAGE:
        return await zookeeper_offsets.commit(parts, request)
    if not is_kafka(request.storage):
        invalid = ErrorCode.INVALID_REQUEST
        return OffsetCommitResponse(
            [OffsetCommitResult(item.topic, item.partition, invalid) for item in request.partitions]
        )
    return await parts.groups.offsets.commit(request)


async def handle_offset_fetch(
    parts: BrokerParts, request: OffsetFetchRequest, peer: Peer
) -> OffsetFetchResponse:
    if request.storage == ZOOKEEPER_STORAGE:
        return OffsetFetchResponse(
            [await zookeeper_offsets.fetch(parts, group) for group in request.groups]
        )
    if not is_kafka(request.storage):
        invalid = ErrorCode.INVALID_REQUEST
        return OffsetFetchResponse(
            [OffsetFetchGroupResult(group.group_id, invalid) for group in request.groups]
        )
    offsets = parts.groups.offsets
    return OffsetFetchResponse(
        [offsets.fetch(group, request.require_stable) for group in request.groups]
    )


async def handle_offset_delete(
    parts: BrokerParts, request: OffsetDeleteRequest, peer: Peer
) -> OffsetDeleteResponse:
    return await parts.groups.offsets.delete(request)

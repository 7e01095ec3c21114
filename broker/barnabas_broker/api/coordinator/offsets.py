"""OffsetCommit, OffsetFetch and OffsetDelete, in the storage that the client names."""

from collections.abc import Iterable

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    KAFKA_STORAGE,
    ZOOKEEPER_STORAGE,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResult,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas_common.runtime import Peer
from barnabas_common.topic_partition import named_once

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
    groups = _each_once(request.groups)
    if request.storage == ZOOKEEPER_STORAGE:
        return OffsetFetchResponse(
            [await zookeeper_offsets.fetch(parts, group) for group in groups]
        )
    if not is_kafka(request.storage):
        invalid = ErrorCode.INVALID_REQUEST
        return OffsetFetchResponse(
            [OffsetFetchGroupResult(group.group_id, invalid) for group in groups]
        )
    offsets = parts.groups.offsets
    return OffsetFetchResponse([offsets.fetch(group, request.require_stable) for group in groups])


def _each_once(groups: Iterable[OffsetFetchGroup]) -> list[OffsetFetchGroup]:
    """The parts of what is asked of a group in one, each partition once."""
    asked: dict[tuple[str, bool], OffsetFetchGroup] = {}
    for group in groups:
        known = asked.setdefault((group.group_id, group.all_topics), group)
        if known is not group:
            known.partitions += group.partitions
    for group in asked.values():
        group.partitions = named_once(group.partitions)
    return list(asked.values())


async def handle_offset_delete(
    parts: BrokerParts, request: OffsetDeleteRequest, peer: Peer
) -> OffsetDeleteResponse:
    return await parts.groups.offsets.delete(request)

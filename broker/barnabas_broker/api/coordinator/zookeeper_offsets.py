"""Offsets in ZooKeeper (Kafka 0.8): any broker is the door, for clients do not speak ZooKeeper.

There is no coordinator and no generation, so that any member may commit at any time: this is what
`__consumer_offsets` put an end to.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from barnabas_common.errors import (
    GroupIdNotFoundError,
    InvalidGroupIdError,
    KafkaError,
    NonEmptyGroupError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    CommittedOffset,
    DeletedGroup,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResult,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
)
from barnabas_common.topic_partition import TopicPartition, named_once
from barnabas_controller.store.consumer_offsets import ConsumerOffsets
from barnabas_controller.zookeeper.session import ZooKeeperError

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.config import keys
from barnabas_broker.coordinator.group.states import GroupState

# As Kafka 0.8 wanted it; "." and ".." are legal names of files, but not of znodes. The length has a
# limit because a ZooKeeper server closes the connection over which a longer path comes.
_GROUP_ID = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,1000}")


async def commit(parts: BrokerParts, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Each znode is written once, however often its partition is named."""
    outcomes = {
        (item.topic, item.partition): await _commit_one(parts, request.group_id, item)
        for item in named_once(request.partitions)
    }
    return OffsetCommitResponse(
        [
            OffsetCommitResult(item.topic, item.partition, outcomes[item.topic, item.partition])
            for item in request.partitions
        ]
    )


async def _commit_one(parts: BrokerParts, group_id: str, item: OffsetCommitPartition) -> ErrorCode:
    if parts.metadata_cache.partition(item.topic, item.partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(item.committed_metadata) > parts.config[keys.OFFSET_METADATA_MAX_BYTES]:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    key = TopicPartition(item.topic, item.partition)
    return await _outcome(
        parts, lambda: _offsets(parts, group_id).put(group_id, key, item.committed_offset)
    )


async def fetch(parts: BrokerParts, asked: OffsetFetchGroup) -> OffsetFetchGroupResult:
    result = OffsetFetchGroupResult(asked.group_id)
    result.error_code = await _outcome(parts, lambda: _fetch(parts, asked, result))
    return result


async def _fetch(
    parts: BrokerParts, asked: OffsetFetchGroup, result: OffsetFetchGroupResult
) -> None:
    offsets = _offsets(parts, asked.group_id)
    if asked.all_topics:
        stored = await offsets.all(asked.group_id)
        result.partitions = [CommittedOffset(*item.partition, item.offset) for item in stored]
        return
    found = []
    for item in asked.partitions:
        offset = None
        if parts.metadata_cache.partition(item.topic, item.partition) is not None:
            key = TopicPartition(item.topic, item.partition)
            offset = await offsets.get(asked.group_id, key)
        found.append(CommittedOffset(item.topic, item.partition, -1 if offset is None else offset))
    result.partitions = found


async def list_groups(parts: BrokerParts, request: ListGroupsRequest) -> ListGroupsResponse:
    """Every group is Empty: members of 0.8, which ZooKeeper kept too, are not supported."""
    states = {state.lower() for state in request.states_filter}
    if states and GroupState.EMPTY.value.lower() not in states:
        return ListGroupsResponse()
    response = ListGroupsResponse()

    async def read() -> None:
        response.groups = [
            ListedGroup(group_id, "", GroupState.EMPTY.value)
            for group_id in await _store_of(parts).groups()
        ]

    response.error_code = await _outcome(parts, read)
    return response


async def delete_groups(parts: BrokerParts, group_ids: Sequence[str]) -> list[DeletedGroup]:
    return [
        DeletedGroup(group_id, await _outcome(parts, partial(_delete, parts, group_id)))
        for group_id in group_ids
    ]


async def _delete(parts: BrokerParts, group_id: str) -> None:
    offsets = _offsets(parts, group_id)
    if group_id not in await offsets.groups():
        raise GroupIdNotFoundError(f"no znode of group {group_id!r}")
    if await offsets.has_members(group_id):
        raise NonEmptyGroupError(f"a consumer of Kafka 0.8 is in group {group_id!r}")
    await offsets.delete(group_id)


def _offsets(parts: BrokerParts, group_id: str) -> ConsumerOffsets:
    if _GROUP_ID.fullmatch(group_id) is None:
        raise InvalidGroupIdError(f"{group_id!r} cannot be the name of a znode")
    return _store_of(parts)


def _store_of(parts: BrokerParts) -> ConsumerOffsets:
    store = parts.store()
    if store is None:
        raise ZooKeeperError("this broker has no ZooKeeper session now")
    return ConsumerOffsets(store)


async def _outcome(parts: BrokerParts, work: Callable[[], Awaitable[None]]) -> ErrorCode:
    """Do it within the time that a commit may take.

    Without a session, another broker or this one a little later can do it.
    """
    try:
        async with asyncio.timeout(parts.config[keys.OFFSETS_COMMIT_TIMEOUT_MS] / 1000):
            await work()
    except KafkaError as error:
        return error.code
    except ZooKeeperError:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE

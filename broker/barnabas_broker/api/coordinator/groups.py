"""ListGroups, DescribeGroups and DeleteGroups."""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    ZOOKEEPER_STORAGE,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas_common.runtime import Peer

from barnabas_broker.api.coordinator import zookeeper_offsets
from barnabas_broker.api.coordinator.offsets import is_kafka
from barnabas_broker.api.parts import BrokerParts

# Their tombstones share batches.
_DELETED_AT_ONCE = 500


async def handle_list_groups(
    parts: BrokerParts, request: ListGroupsRequest, peer: Peer
) -> ListGroupsResponse:
    if request.storage == ZOOKEEPER_STORAGE:
        return await zookeeper_offsets.list_groups(parts, request)
    if not is_kafka(request.storage):
        return ListGroupsResponse(ErrorCode.INVALID_REQUEST)
    return parts.groups.admin.list(request)


async def handle_describe_groups(
    parts: BrokerParts, request: DescribeGroupsRequest, peer: Peer
) -> DescribeGroupsResponse:
    describe, without = parts.groups.admin.describe, request.without_members
    names = dict.fromkeys(request.groups)
    return DescribeGroupsResponse([describe(name, without) for name in names])


async def handle_delete_groups(
    parts: BrokerParts, request: DeleteGroupsRequest, peer: Peer
) -> DeleteGroupsResponse:
    names = list(dict.fromkeys(request.groups_names))
    if request.storage == ZOOKEEPER_STORAGE:
        return DeleteGroupsResponse(await zookeeper_offsets.delete_groups(parts, names))
    if not is_kafka(request.storage):
        return DeleteGroupsResponse([DeletedGroup(n, ErrorCode.INVALID_REQUEST) for n in names])
    deleted: list[DeletedGroup] = []
    for start in range(0, len(names), _DELETED_AT_ONCE):
        some = names[start : start + _DELETED_AT_ONCE]
        deletions = [parts.groups.admin.delete(name, request.client_id) for name in some]
        deleted += await asyncio.gather(*deletions)
    return DeleteGroupsResponse(deleted)

"""ListGroups, DescribeGroups and DeleteGroups."""

from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_list_groups(
    parts: BrokerParts, request: ListGroupsRequest, peer: Peer
) -> ListGroupsResponse:
    return parts.groups.admin.list(request)


async def handle_describe_groups(
    parts: BrokerParts, request: DescribeGroupsRequest, peer: Peer
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse([parts.groups.admin.describe(name) for name in request.groups])


async def handle_delete_groups(
    parts: BrokerParts, request: DeleteGroupsRequest, peer: Peer
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        [await parts.groups.admin.delete(name, request.client_id) for name in request.groups_names]
    )

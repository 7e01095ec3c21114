"""ListOffsets of clients: where a log starts, ends, or first reaches a timestamp."""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.offsets import ListedOffset, ListOffsetsRequest, ListOffsetsResponse
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_list_offsets(
    parts: BrokerParts, request: ListOffsetsRequest, peer: Peer
) -> ListOffsetsResponse:
    """Answer a consumer. A replica id is refused: with one, the latest offset is the log end."""
    if request.replica_id >= 0:
        return ListOffsetsResponse(
            [
                ListedOffset(item.topic, item.partition, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                for item in request.partitions
            ]
        )
    return await parts.replica_manager.offsets.list_offsets(request)

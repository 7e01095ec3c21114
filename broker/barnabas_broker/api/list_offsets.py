"""ListOffsets: where a log begins, ends, or first reaches a timestamp."""

from barnabas.error_code import ErrorCode
from barnabas.messages.offsets import ListedOffset, ListOffsetsRequest, ListOffsetsResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_list_offsets(
    parts: BrokerParts, request: ListOffsetsRequest, peer: Peer
) -> ListOffsetsResponse:
    """For consumers: the latest offset is the high watermark."""
    if request.replica_id >= 0:
        return ListOffsetsResponse(
            [
                ListedOffset(item.topic, item.partition, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                for item in request.partitions
            ]
        )
    return await parts.replica_manager.list_offsets(request)


async def handle_replica_list_offsets(
    parts: BrokerParts, request: ListOffsetsRequest, peer: Peer
) -> ListOffsetsResponse:
    """For followers: the latest offset is the log end offset."""
    return await parts.replica_manager.list_offsets(request)

"""InitProducerId: a producer asks for an id, under which its retries are recognized."""

from barnabas_common.errors import InvalidRequestError, KafkaError
from barnabas_common.messages.producer_ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_init_producer_id(
    parts: BrokerParts, request: InitProducerIdRequest, peer: Peer
) -> InitProducerIdResponse:
    """As in Kafka a producer without a transactional id always gets a new id, whatever it has."""
    try:
        _check(request)
        if request.transactional_id:
            return await parts.transactions.init_producer_id(request, peer.address)
        return InitProducerIdResponse(
            producer_id=await parts.producer_ids.generate(), producer_epoch=0
        )
    except KafkaError as error:
        return InitProducerIdResponse(error.code, error_message=error.message)


def _check(request: InitProducerIdRequest) -> None:
    has_id = request.producer_id != NO_PRODUCER_ID
    if has_id != (request.producer_epoch != NO_PRODUCER_EPOCH):
        raise InvalidRequestError("a producer id and its epoch come together")

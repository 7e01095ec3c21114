"""CreatePartitions: the controller adds partitions, and the answer waits for their leaders."""

from collections import Counter

from barnabas_common.errors import InvalidTopicError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    NewPartitions,
    TopicResult,
)
from barnabas_common.runtime import Peer

from barnabas_broker.api.create_topics import refuse_internal, wait_for_leaders
from barnabas_broker.api.parts import BrokerParts


async def handle_create_partitions(
    parts: BrokerParts, request: CreatePartitionsRequest, peer: Peer
) -> CreatePartitionsResponse:
    named = Counter(new.topic for new in request.topics)
    results = [
        TopicResult(new.topic, ErrorCode.INVALID_REQUEST, "the topic is named twice")
        if named[new.topic] > 1
        else await _grow(parts, new, request.validate_only)
        for new in request.topics
    ]
    if not request.validate_only:
        await wait_for_leaders(parts, results, request.timeout_ms / 1000, "grown")
    return CreatePartitionsResponse(results)


async def _grow(parts: BrokerParts, new: NewPartitions, validate_only: bool) -> TopicResult:
    try:
        refuse_internal(new.topic)
    except InvalidTopicError as error:
        return TopicResult(new.topic, error.code, error.message)
    controller = parts.controller()
    if controller is None:
        return TopicResult(new.topic, ErrorCode.NOT_CONTROLLER)
    return await controller.create_partitions(new, validate_only)

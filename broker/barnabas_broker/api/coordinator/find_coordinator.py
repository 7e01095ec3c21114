"""FindCoordinator: the leader of the partition that holds the key.

The first one creates the internal topic, as in Kafka; the client asks again until it has leaders.
"""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    GROUP_KEY,
    TRANSACTION_KEY,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

from barnabas_broker.api.coordinator.internal_topics import create_internal_topic
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.coordinator.key_partition import partition_of_key

_TOPICS = {GROUP_KEY: GROUP_METADATA_TOPIC, TRANSACTION_KEY: TRANSACTION_STATE_TOPIC}


async def handle_find_coordinator(
    parts: BrokerParts, request: FindCoordinatorRequest, peer: Peer
) -> FindCoordinatorResponse:
    topic = _TOPICS.get(request.key_type)
    if topic is None:
        text = f"there are no coordinators of key type {request.key_type}"
        return FindCoordinatorResponse(
            [_refused(key, ErrorCode.INVALID_REQUEST, text) for key in request.coordinator_keys]
        )
    problem = ""
    if not parts.metadata_cache.contains(topic) and request.coordinator_keys:
        problem = await create_internal_topic(parts, topic)
    return FindCoordinatorResponse(
        [_find(parts, topic, key, peer, problem) for key in request.coordinator_keys]
    )


def _find(parts: BrokerParts, topic: str, key: str, peer: Peer, problem: str) -> FoundCoordinator:
    cache = parts.metadata_cache
    count = cache.partition_count(topic)
    if not count:
        text = problem or f"{topic} is being created"
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
    partition = partition_of_key(key, count)
    state = cache.partition(topic, partition)
    leader = -1 if state is None else state.leader
    address = cache.address_of(leader, peer.listener) if cache.is_alive(leader) else None
    if address is None:
        text = f"{topic}-{partition} has no leader now"
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
    return FoundCoordinator(key, leader, address.host, address.port)


def _refused(key: str, error: ErrorCode, text: str) -> FoundCoordinator:
    return FoundCoordinator(key, error_code=error, error_message=text)

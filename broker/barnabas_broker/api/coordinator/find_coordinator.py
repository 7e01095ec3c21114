"""FindCoordinator: the leader of the partition that holds the key.

The first one creates the internal topic, as in Kafka; the client asks again until it has leaders.
"""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    GROUP_KEY,
    TRANSACTION_KEY,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from barnabas_common.runtime import Peer

from barnabas_broker.api.coordinator.internal_topics import create_internal_topic
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.coordinator.record_fields import fits

# Other requests get their turn after so many; hashing a long key takes some milliseconds.
_KEYS_BETWEEN_PAUSES = 10


async def handle_find_coordinator(
    parts: BrokerParts, request: FindCoordinatorRequest, peer: Peer
) -> FindCoordinatorResponse:
    topics = {GROUP_KEY: parts.groups.topic, TRANSACTION_KEY: parts.transactions.topic}
    topic = topics.get(request.key_type)
    if topic is None:
        text = f"there are no coordinators of key type {request.key_type}"
        return FindCoordinatorResponse(
            [_refused(key, ErrorCode.INVALID_REQUEST, text) for key in request.coordinator_keys]
        )
    problem = ""
    if not topic.exists and request.coordinator_keys:
        problem = await create_internal_topic(parts, topic.name)
    elif not topic.partition_count and not await topic.learn():
        problem = f"the partitions of {topic.name} cannot be read from ZooKeeper now"
    found = []
    for number, key in enumerate(request.coordinator_keys, 1):
        found.append(_find(parts, topic, key, peer, problem))
        if number % _KEYS_BETWEEN_PAUSES == 0:
            await asyncio.sleep(0)
    return FindCoordinatorResponse(found)


def _find(
    parts: BrokerParts, topic: InternalTopic, key: str, peer: Peer, problem: str
) -> FoundCoordinator:
    if not fits(key):  # a coordinator would refuse it, and hashing it takes its time
        invalid = topic is parts.groups.topic
        error = ErrorCode.INVALID_GROUP_ID if invalid else ErrorCode.INVALID_REQUEST
        return _refused(key, error, "the key is too long for a record")
    cache = parts.metadata_cache
    count = topic.partition_count
    if not count:
        text = problem or f"{topic.name} is being created"
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
    partition = partition_of_key(key, count)
    state = cache.partition(topic.name, partition)
    leader = -1 if state is None else state.leader
    address = cache.address_of(leader, peer.listener) if cache.is_alive(leader) else None
    if address is None:
        text = f"{topic.name}-{partition} has no leader now"
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
    return FoundCoordinator(key, leader, address.host, address.port)


def _refused(key: str, error: ErrorCode, text: str) -> FoundCoordinator:
    return FoundCoordinator(key, error_code=error, error_message=text)

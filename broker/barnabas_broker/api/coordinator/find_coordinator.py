"""FindCoordinator: the leader of the partition that holds the key.

The first one creates the internal topic, as in Kafka; the client asks again until it has leaders.
"""

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.groups import (
    GROUP_KEY,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from barnabas_common.messages.topics import ConfigEntry, NewTopic
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import GROUP_METADATA_TOPIC

from barnabas_broker.api.create_topics import create_topic
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.config import keys
from barnabas_broker.coordinator.key_partition import partition_of_key

# With three replicas a commit outlives any one of them.
_MIN_INSYNC_OF_THREE = 2


async def handle_find_coordinator(
    parts: BrokerParts, request: FindCoordinatorRequest, peer: Peer
) -> FindCoordinatorResponse:
    if request.key_type != GROUP_KEY:
        text = f"there are no coordinators of key type {request.key_type}"
        return FindCoordinatorResponse(
            [_refused(key, ErrorCode.INVALID_REQUEST, text) for key in request.coordinator_keys]
        )
    problem = ""
    if not parts.metadata_cache.contains(GROUP_METADATA_TOPIC) and request.coordinator_keys:
        problem = await _create_offsets_topic(parts)
    elif not parts.groups.topic.partition_count and not await parts.groups.topic.learn():
        problem = f"the partitions of {GROUP_METADATA_TOPIC} cannot be read from ZooKeeper now"
    return FindCoordinatorResponse(
        [_find(parts, key, peer, problem) for key in request.coordinator_keys]
    )


def _find(parts: BrokerParts, key: str, peer: Peer, problem: str) -> FoundCoordinator:
    cache = parts.metadata_cache
    count = parts.groups.topic.partition_count
    if not count:
        text = problem or f"{GROUP_METADATA_TOPIC} is being created"
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
    partition = partition_of_key(key, count)
    state = cache.partition(GROUP_METADATA_TOPIC, partition)
    leader = -1 if state is None else state.leader
    address = cache.address_of(leader, peer.listener) if cache.is_alive(leader) else None
    if address is None:
        text = f"{GROUP_METADATA_TOPIC}-{partition} has no leader now"
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
    return FoundCoordinator(key, leader, address.host, address.port)


def _refused(key: str, error: ErrorCode, text: str) -> FoundCoordinator:
    return FoundCoordinator(key, error_code=error, error_message=text)


async def _create_offsets_topic(parts: BrokerParts) -> str:
    """Create `__consumer_offsets`; returns why that failed, or nothing."""
    if parts.metadata_cache.controller_id < 0:
        return "this broker knows no controller yet"
    try:
        await create_topic(parts, offsets_topic(parts), validate_only=False)
    except KafkaError as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return ""
        if not error.retriable:
            _report_once(parts, str(error))
        return str(error)
    return ""


def _report_once(parts: BrokerParts, cause: str) -> None:
    """Clients ask again many times a second."""
    if parts.groups.offsets_topic_refusal != cause:
        parts.groups.offsets_topic_refusal = cause
        parts.events.record(EventKind.OFFSETS_TOPIC_REFUSED, cause, topic=GROUP_METADATA_TOPIC)


def offsets_topic(parts: BrokerParts) -> NewTopic:
    """`__consumer_offsets` as it is created."""
    config = parts.config
    factor = config[keys.OFFSETS_TOPIC_REPLICATION_FACTOR]
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config[keys.OFFSETS_TOPIC_SEGMENT_BYTES]),
    }
    if factor >= 3:
        configs["min.insync.replicas"] = str(_MIN_INSYNC_OF_THREE)
    return NewTopic(
        GROUP_METADATA_TOPIC,
        config[keys.OFFSETS_TOPIC_NUM_PARTITIONS],
        factor,
        configs=[ConfigEntry(name, value) for name, value in configs.items()],
    )

"""Metadata: the registered brokers, the partitions and their leaders, from this broker's cache.

The cache holds what the controller last sent (UpdateMetadata). It may be out of date, and two
brokers may disagree; leader epochs let a client keep the newer answer.
"""

import logging

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.metadata import (
    BrokerInfo,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas_common.messages.topics import NewTopic
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import INTERNAL_TOPICS, validate_topic_name

from barnabas_broker.api.create_topics import create_topic
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.config import keys

logger = logging.getLogger(__name__)

# How long a broker that has just started waits for the first UpdateMetadata before it answers: with
# an empty cache it would answer that no topic exists.
FIRST_UPDATE_SECONDS = 1.0


async def handle_metadata(
    parts: BrokerParts, request: MetadataRequest, peer: Peer
) -> MetadataResponse:
    cache = parts.metadata_cache
    await cache.wait_for(lambda: cache.controller_id >= 0, FIRST_UPDATE_SECONDS)
    names = cache.topics() if request.all_topics else list(dict.fromkeys(request.topics))
    create = request.allow_auto_topic_creation and parts.config[keys.AUTO_CREATE_TOPICS_ENABLE]
    return MetadataResponse(
        cluster_id=parts.cluster_id,
        controller_id=cache.controller_id,
        brokers=[
            BrokerInfo(endpoint.broker_id, endpoint.host, endpoint.port, endpoint.rack)
            for endpoint in cache.endpoints(peer.listener)
        ],
        topics=[await _topic_metadata(parts, name, create) for name in names],
    )


async def _topic_metadata(parts: BrokerParts, topic: str, create: bool) -> TopicMetadata:
    cache = parts.metadata_cache
    if cache.contains(topic):
        return TopicMetadata(
            topic,
            topic_id=cache.topic_id(topic),
            is_internal=topic in INTERNAL_TOPICS,
            partitions=[
                PartitionMetadata(
                    partition=state.partition,
                    error_code=ErrorCode.LEADER_NOT_AVAILABLE if state.leader < 0 else 0,
                    leader_id=state.leader,
                    leader_epoch=state.leader_epoch,
                    replicas=list(state.replicas),
                    in_sync_replicas=list(state.in_sync_replicas),
                    offline_replicas=[
                        replica for replica in state.replicas if not cache.is_alive(replica)
                    ],
                )
                for state in cache.partitions(topic)
            ],
        )
    try:
        validate_topic_name(topic)
    except KafkaError as error:
        return TopicMetadata(topic, error.code)
    if cache.controller_id < 0:  # no topic is known yet: the client retries
        return TopicMetadata(topic, ErrorCode.LEADER_NOT_AVAILABLE)
    if create and topic not in INTERNAL_TOPICS:
        return TopicMetadata(topic, await _auto_create(parts, topic))
    return TopicMetadata(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def _auto_create(parts: BrokerParts, topic: str) -> ErrorCode:
    """Create with the broker's defaults; the client retries until there is a leader."""
    try:
        await create_topic(parts, NewTopic(topic), validate_only=False)
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            logger.warning("cannot create %s automatically: %s", topic, error)
            return error.code
    return ErrorCode.LEADER_NOT_AVAILABLE

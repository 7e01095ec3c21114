"""CreateTopics: check, write to ZooKeeper, and wait until the controller has elected leaders.

Any broker can do it: the znode `/brokers/topics/<topic>` is the request, and the controller watches
for it.
"""

from collections import Counter
from collections.abc import Mapping

from barnabas_common.errors import InvalidConfigError, InvalidTopicError, KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    TopicResult,
)
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import INTERNAL_TOPICS
from barnabas_controller.topics.admin_zk_client import AdminZkClient, TopicDefaults

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.zookeeper_call import current_store, kafka_errors
from barnabas_broker.config import InvalidConfig, keys, parse_topic_overrides


async def handle_create_topics(
    parts: BrokerParts, request: CreateTopicsRequest, peer: Peer
) -> CreateTopicsResponse:
    named = Counter(new_topic.topic for new_topic in request.topics)
    results = [
        TopicResult(new_topic.topic, ErrorCode.INVALID_REQUEST, "the topic is named twice")
        if named[new_topic.topic] > 1
        else await _create(parts, new_topic, request.validate_only)
        for new_topic in request.topics
    ]
    if not request.validate_only:
        await wait_for_leaders(parts, results, request.timeout_ms / 1000)
    return CreateTopicsResponse(results)


async def _create(parts: BrokerParts, new_topic: NewTopic, validate_only: bool) -> TopicResult:
    try:
        refuse_internal(new_topic.topic)
        return await create_topic(parts, new_topic, validate_only)
    except KafkaError as error:
        return TopicResult(new_topic.topic, error.code, error.message)


def refuse_internal(topic: str) -> None:
    """Raise InvalidTopicError for a topic that only brokers create, or that has a fixed size.

    A coordinator finds its groups by the number of partitions, which must never change.
    """
    if topic in INTERNAL_TOPICS:
        raise InvalidTopicError(f"{topic} is an internal topic: brokers create it")


async def create_topic(parts: BrokerParts, new_topic: NewTopic, validate_only: bool) -> TopicResult:
    """Write one topic's znodes; raises the KafkaError that names what is wrong with it."""
    defaults = TopicDefaults(
        partitions=parts.config[keys.NUM_PARTITIONS],
        replication_factor=parts.config[keys.DEFAULT_REPLICATION_FACTOR],
    )
    with kafka_errors():
        listener = parts.config.inter_broker_listener
        admin = AdminZkClient(current_store(parts), parts.runtime.randomness, listener)
        created = await admin.create_topic(new_topic, defaults, _check_configs, validate_only)
    return TopicResult(
        created.topic,
        topic_id=created.topic_id,
        partitions=len(created.partitions),
        replication_factor=created.replication_factor,
    )


def _check_configs(configs: Mapping[str, str]) -> None:
    try:
        parse_topic_overrides(configs)
    except InvalidConfig as error:
        raise InvalidConfigError(str(error)) from None


async def wait_for_leaders(
    parts: BrokerParts, results: list[TopicResult], timeout: float, changed: str = "created"
) -> None:
    """Wait for a leader of every partition; REQUEST_TIMED_OUT for a topic that lacks one."""
    cache = parts.metadata_cache
    created = [result for result in results if not result.error_code]

    def led(result: TopicResult) -> bool:
        states = cache.partitions(result.topic)
        if result.topic_id and any(s.topic_id != result.topic_id for s in states):
            return False  # what is known is an earlier topic of that name
        return len(states) == result.partitions and all(s.leader >= 0 for s in states)

    if not await cache.wait_for(lambda: all(led(result) for result in created), timeout):
        for result in created:
            if not led(result):
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
                result.error_message = (
                    f"{changed}: topic {result.topic!r} exists, but after {timeout:g} s"
                    " not every partition has a leader yet"
                )

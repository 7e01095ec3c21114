"""The topics of the coordinators: their settings, and their creation on first use, as in Kafka."""

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.topics import ConfigEntry, NewTopic
from barnabas_common.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

from barnabas_broker.api.create_topics import create_topic
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.config import keys

# With three replicas a commit outlives any one of them.
_MIN_INSYNC_OF_THREE = 2


async def create_internal_topic(parts: BrokerParts, topic: str) -> str:
    """Create one of the two topics; returns why that failed, or nothing."""
    if parts.metadata_cache.controller_id < 0:
        return "this broker knows no controller yet"
    settings = offsets_topic if topic == GROUP_METADATA_TOPIC else transaction_topic
    try:
        await create_topic(parts, settings(parts), validate_only=False)
    except KafkaError as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return ""
        if not error.retriable:
            _report_once(parts, topic, str(error))
        return str(error)
    return ""


def _report_once(parts: BrokerParts, topic: str, cause: str) -> None:
    """Clients ask again many times a second."""
    if topic == GROUP_METADATA_TOPIC:
        kind, known = EventKind.OFFSETS_TOPIC_REFUSED, parts.groups.offsets_topic_refusal
        parts.groups.offsets_topic_refusal = cause
    else:
        kind, known = EventKind.TRANSACTION_TOPIC_REFUSED, parts.transactions.topic_refusal
        parts.transactions.topic_refusal = cause
    if known != cause:
        parts.events.record(kind, cause, topic=topic)


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
    return _topic(GROUP_METADATA_TOPIC, config[keys.OFFSETS_TOPIC_NUM_PARTITIONS], factor, configs)


def transaction_topic(parts: BrokerParts) -> NewTopic:
    """`__transaction_state` as it is created.

    An unclean election could lose a decision of which some partitions have the marker. So none is
    allowed, whatever the broker's default is.
    """
    config = parts.config
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": str(config[keys.TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
        "min.insync.replicas": str(config[keys.TRANSACTION_STATE_LOG_MIN_ISR]),
        "unclean.leader.election.enable": "false",
    }
    return _topic(
        TRANSACTION_STATE_TOPIC,
        config[keys.TRANSACTION_STATE_LOG_NUM_PARTITIONS],
        config[keys.TRANSACTION_STATE_LOG_REPLICATION_FACTOR],
        configs,
    )


def _topic(name: str, partitions: int, factor: int, configs: dict[str, str]) -> NewTopic:
    entries = [ConfigEntry(key, value) for key, value in configs.items()]
    return NewTopic(name, partitions, factor, configs=entries)

"""DescribeConfigs: the settings in force, and where each was found."""

from collections.abc import Mapping

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.configs import (
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)
from barnabas_common.runtime import Peer
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.config_store import BROKER_DEFAULT, read_overrides, topic_entity

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.zookeeper_call import current_store, kafka_errors
from barnabas_broker.config import (
    TOPIC_KEYS,
    Config,
    DynamicConfig,
    InvalidConfig,
    LogConfig,
    Source,
    keys,
)


async def handle_describe_configs(
    parts: BrokerParts, request: DescribeConfigsRequest, peer: Peer
) -> DescribeConfigsResponse:
    resources = [await _describe_topic(parts, topic) for topic in dict.fromkeys(request.topics)]
    if request.broker:
        resources.append(DescribedConfigs("", configs=_broker_configs(parts.config)))
    if request.cluster_default:
        resources.append(await _describe_cluster_default(parts))
    return DescribeConfigsResponse(resources)


async def _describe_topic(parts: BrokerParts, topic: str) -> DescribedConfigs:
    if not parts.metadata_cache.contains(topic):
        return DescribedConfigs(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {topic}")
    try:
        overrides = await _overrides(parts, topic_entity(topic))
        return DescribedConfigs(topic, configs=_topic_configs(parts.config, overrides))
    except KafkaError as error:
        return DescribedConfigs(topic, error.code, error.message)
    except (MalformedZnode, InvalidConfig) as error:
        return DescribedConfigs(topic, ErrorCode.INVALID_CONFIG, str(error))


async def _describe_cluster_default(parts: BrokerParts) -> DescribedConfigs:
    try:
        overrides = await _overrides(parts, BROKER_DEFAULT)
    except KafkaError as error:
        return DescribedConfigs("", error.code, error.message)
    except MalformedZnode as error:
        return DescribedConfigs("", ErrorCode.INVALID_CONFIG, str(error))
    described = []
    for name, value in overrides.items():
        key = keys.BROKER_KEYS.get(name)
        doc = "not known to this broker" if key is None else key.doc
        described.append(ConfigDescription(name, value, Source.CLUSTER, doc, is_dynamic=True))
    return DescribedConfigs("", configs=described)


async def _overrides(parts: BrokerParts, entity: str) -> dict[str, str]:
    with kafka_errors():
        return await read_overrides(current_store(parts), entity)


def _topic_configs(config: DynamicConfig, overrides: dict[str, str]) -> list[ConfigDescription]:
    values = topic_values(config.log_config(overrides))
    return [
        ConfigDescription(
            name,
            values[name],
            Source.TOPIC if name in overrides else config.source_of_topic_key(name),
            key.doc,
            key.dynamic,
        )
        for name, key in TOPIC_KEYS.items()
    ]


def _broker_configs(config: DynamicConfig) -> list[ConfigDescription]:
    values = broker_values(config)
    return [
        ConfigDescription(name, values[name], config.source_of(name), key.doc, key.dynamic)
        for name, key in keys.BROKER_KEYS.items()
    ]


def topic_values(config: LogConfig) -> Mapping[str, str]:
    """The settings of a topic, as text under their dotted names."""
    return {name: _text(getattr(config, name.replace(".", "_"))) for name in TOPIC_KEYS}


def broker_values(config: Config) -> Mapping[str, str]:
    """The settings of a broker, as text."""
    return {name: _text(config[key]) for name, key in keys.BROKER_KEYS.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)

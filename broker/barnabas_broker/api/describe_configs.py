"""DescribeConfigs: the settings in force, and where each was found."""

from barnabas.error_code import ErrorCode
from barnabas.messages.topics import (
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.config import TOPIC_KEYS, Config, LogConfig, keys


async def handle_describe_configs(
    parts: BrokerParts, request: DescribeConfigsRequest, peer: Peer
) -> DescribeConfigsResponse:
    resources = [await _describe_topic(parts, topic) for topic in request.topics]
    if request.broker:
        resources.append(DescribedConfigs("", configs=_broker_configs(parts.config)))
    return DescribeConfigsResponse(resources)


async def _describe_topic(parts: BrokerParts, topic: str) -> DescribedConfigs:
    if not parts.metadata_cache.contains(topic):
        return DescribedConfigs(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {topic}")
    store = parts.store()
    if store is None:
        return DescribedConfigs(topic, ErrorCode.NETWORK_EXCEPTION, "no ZooKeeper session")
    overrides = await store.topic_config(topic)
    return DescribedConfigs(topic, configs=_topic_configs(parts.config, overrides))


def _topic_configs(config: Config, overrides: dict[str, str]) -> list[ConfigDescription]:
    effective = config.log_config(overrides)
    defaults, kafka = config.log_config(), LogConfig()
    described = []
    for name, key in TOPIC_KEYS.items():
        field = name.replace(".", "_")
        value = getattr(effective, field)
        if name in overrides:
            source = "topic"
        else:
            changed = getattr(defaults, field) != getattr(kafka, field)
            source = "broker" if changed else "default"
        described.append(ConfigDescription(name, _text(value), source, key.doc))
    return described


def _broker_configs(config: Config) -> list[ConfigDescription]:
    return [
        ConfigDescription(
            name, _text(config[key]), "broker" if config.is_set(key) else "default", key.doc
        )
        for name, key in keys.BROKER_KEYS.items()
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)

"""IncrementalAlterConfigs: check, write the overrides to ZooKeeper, and announce them (KIP-339).

Any broker changes a topic and the default of all brokers. Only the broker itself changes its own
settings, because it alone knows which values contradict its file. The answer is sent when the
change is written; the brokers apply it shortly afterwards.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from barnabas_common.errors import InvalidTopicError, KafkaError, error_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.configs import (
    AlterConfigResource,
    AlterConfigResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import validate_topic_name
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.config_store import (
    BROKER_DEFAULT,
    broker_entity,
    change_overrides,
    read_overrides,
    topic_entity,
)
from barnabas_controller.store.store import Store
from barnabas_controller.topics.admin_zk_client import MAX_ZNODE_BYTES

from barnabas_broker.api.describe_configs import broker_values, topic_values
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.zookeeper_call import current_store, kafka_errors
from barnabas_broker.config import (
    TOPIC_KEYS,
    Change,
    InvalidChange,
    InvalidConfig,
    Source,
    altered,
    keys,
    parse_topic_overrides,
)

Edit = Callable[[dict[str, str]], dict[str, str]]


async def handle_incremental_alter_configs(
    parts: BrokerParts, request: IncrementalAlterConfigsRequest, peer: Peer
) -> IncrementalAlterConfigsResponse:
    results = []
    named = Counter((resource.resource_type, resource.name) for resource in request.resources)
    for resource in request.resources:
        result = AlterConfigResult(resource.resource_type, resource.name)
        try:
            if named[resource.resource_type, resource.name] > 1:
                raise error_for(ErrorCode.INVALID_REQUEST, "named twice in one request")
            await _alter(parts, resource, request.validate_only)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return IncrementalAlterConfigsResponse(results)


async def _alter(parts: BrokerParts, resource: AlterConfigResource, validate_only: bool) -> None:
    store = current_store(parts)
    try:
        with kafka_errors():
            entity, edit = await _entity_and_edit(parts, store, resource)
            if validate_only:
                edit(await read_overrides(store, entity))
            else:
                await change_overrides(store, entity, edit)
    except InvalidChange as error:
        raise error_for(ErrorCode.INVALID_REQUEST, str(error)) from None
    except (InvalidConfig, MalformedZnode) as error:
        raise error_for(ErrorCode.INVALID_CONFIG, str(error)) from None


async def _entity_and_edit(
    parts: BrokerParts, store: Store, resource: AlterConfigResource
) -> tuple[str, Edit]:
    """The entity to change, and the function from its present overrides to the new ones."""
    changes = [Change(change.name, change.operation, change.value) for change in resource.changes]
    if sum(len(change.value) for change in changes) > MAX_ZNODE_BYTES:
        raise InvalidChange("the values are over ZooKeeper's limit")
    if resource.resource_type == "topic":
        await _check_topic_exists(store, resource.name)
        return topic_entity(resource.name), lambda present: _topic(parts, present, changes)
    if resource.resource_type != "broker":
        raise InvalidChange(f"no such kind of resource: {resource.resource_type!r}")
    if resource.name == "":
        return BROKER_DEFAULT, lambda present: _broker(parts, Source.CLUSTER, present, changes)
    if resource.name != str(parts.broker_id):
        raise InvalidChange(f"this is broker {parts.broker_id}, not broker {resource.name}")
    entity = broker_entity(parts.broker_id)
    return entity, lambda present: _broker(parts, Source.BROKER, present, changes)


async def _check_topic_exists(store: Store, topic: str) -> None:
    try:
        validate_topic_name(topic)  # the name becomes part of a path
    except InvalidTopicError as error:
        raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error.message) from None
    if await store.exists(znodes.topic_path(topic)) is None:
        raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} does not exist")


def _topic(parts: BrokerParts, present: Mapping[str, str], changes: list[Change]) -> dict[str, str]:
    in_force = topic_values(parts.config.log_config())
    overrides = altered(present, changes, TOPIC_KEYS, in_force)
    parse_topic_overrides(overrides)
    return overrides


def _broker(
    parts: BrokerParts, source: Source, present: Mapping[str, str], changes: list[Change]
) -> dict[str, str]:
    overrides = altered(present, changes, keys.BROKER_KEYS, broker_values(parts.config))
    parts.config.check_override(source, overrides)
    return overrides

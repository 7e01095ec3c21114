"""The minimum ISR of partitions, and which version of the settings it comes from.

Replicas are eligible by one minimum. If it was lowered and raised again since, a leader may have
committed records without them. So the state contains the version of the settings.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.store.config_store import (
    BROKER_DEFAULT,
    MIN_ISR_KEY,
    entity_path,
    minimum_since,
    topic_entity,
)
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.requests import in_chunks


class MinimumIsr(NamedTuple):
    """The effective minimum, and the version of the settings that it comes from.

    The minimum may come from the settings of the topic or of all brokers. `version` is the zxid of
    the last change of either that may have changed a minimum; 0 if neither exists.
    """

    size: int
    version: int


NO_MINIMUM = MinimumIsr(0, -1)


def minimum_isr(overrides: Mapping[str, str], default: int, replica_count: int) -> int:
    """The effective minimum ISR of a partition by its topic's overrides.

    It is never more than its number of replicas. Raises ValueError if the override is not a
    positive number.
    """
    if MIN_ISR_KEY not in overrides:
        return min(default, replica_count)
    minimum = int(overrides[MIN_ISR_KEY])
    if minimum < 1:
        raise ValueError(f"{MIN_ISR_KEY} is {minimum}")
    return min(minimum, replica_count)


def settings_of(topic: str) -> tuple[str, str]:
    """The paths of the settings that may contain a minimum ISR: those of the topic and those of all
    brokers. (A single broker cannot have its own minimum.)"""
    return entity_path(topic_entity(topic)), entity_path(BROKER_DEFAULT)


async def read_minimum_isrs(
    store: Store, assignments: Mapping[TopicPartition, Sequence[int]], default: int
) -> dict[TopicPartition, MinimumIsr]:
    """The minimum ISR of each partition in `assignments`, which has the replicas of each.

    A topic with malformed settings is left out: by another minimum than the topic's, replicas that
    miss committed records may count as eligible.
    """

    topics = list(dict.fromkeys(partition.topic for partition in assignments))
    paths = list(dict.fromkeys(path for topic in topics for path in settings_of(topic)))
    # Read before the settings: a change in between makes the version too old, which ends
    # eligibility.
    versions = dict(zip(paths, await in_chunks(partial(minimum_since, store), paths), strict=True))
    configs = await store.topic_configs(topics)
    found = {}
    for partition, replicas in assignments.items():
        version_of_topic = max(versions[path] for path in settings_of(partition.topic))
        if partition.topic in configs:
            with suppress(ValueError):
                size = minimum_isr(configs[partition.topic], default, len(replicas))
                found[partition] = MinimumIsr(size, version_of_topic)
    return found

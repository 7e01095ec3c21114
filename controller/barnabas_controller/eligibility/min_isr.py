"""The minimum ISR of partitions, and which version of the settings it comes from.

Replicas are eligible by one minimum. If that was lowered and raised again in between, a leader may
have committed records without them. So the state remembers the version of the settings.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.store import znodes
from barnabas_controller.store.config_store import BROKER_DEFAULT, broker_entity, entity_path
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.requests import in_chunks

MIN_ISR_KEY = "min.insync.replicas"


class MinimumIsr(NamedTuple):
    """`version` is the zxid of the last change of any settings that may contain the minimum: of the
    topic, of all brokers, or of one broker with a replica. 0: there are no such settings."""

    size: int
    version: int


NO_MINIMUM = MinimumIsr(0, -1)


def minimum_isr(overrides: Mapping[str, str], default: int, replica_count: int) -> int:
    """The effective minimum ISR of a partition, by its topic's overrides: never more than it has
    replicas."""
    text = overrides.get(MIN_ISR_KEY, "")
    return min(int(text) if text.isascii() and text.isdigit() else default, replica_count)


async def read_minimum_isrs(
    store: Store, assignments: Mapping[TopicPartition, Sequence[int]], default: int
) -> dict[TopicPartition, MinimumIsr]:
    """The minimum ISR of each of these partitions, by its replicas.

    A topic with malformed settings is left out: replicas that are eligible by another minimum than
    the topic's may miss committed records.
    """

    async def topic_settings(topic: str) -> tuple[Mapping[str, str], int] | None:
        path = znodes.topic_config_path(topic)
        absent: tuple[Mapping[str, str], int] = ({}, 0)
        return await store.read(
            path, lambda data, stat: (znodes.decode_config(path, data), stat.mzxid), None, absent
        )

    async def version(entity: str) -> int:
        stat = await store.exists(entity_path(entity))
        return 0 if stat is None else stat.mzxid

    topics = list(dict.fromkeys(partition.topic for partition in assignments))
    brokers = sorted({replica for replicas in assignments.values() for replica in replicas})
    entities = [BROKER_DEFAULT, *map(broker_entity, brokers)] if topics else []
    by_topic = dict(zip(topics, await in_chunks(topic_settings, topics), strict=True))
    versions = dict(zip(entities, await in_chunks(version, entities), strict=True))
    minima = {}
    for partition, replicas in assignments.items():
        settings = by_topic[partition.topic]
        if settings is not None:
            overrides, changed = settings
            latest = max(
                changed, versions[BROKER_DEFAULT], *(versions[broker_entity(r)] for r in replicas)
            )
            minima[partition] = MinimumIsr(minimum_isr(overrides, default, len(replicas)), latest)
    return minima

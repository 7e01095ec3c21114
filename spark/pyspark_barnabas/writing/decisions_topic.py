"""The topic of decisions, as a topic: how it is created, and which one cannot keep decisions.

Someone else may have created it, or changed its settings. If a decision is lost, its batch is
written twice. So a topic that may lose one is refused before anything is written.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from barnabas import Admin
from barnabas_common.errors import (
    BarnabasError,
    InvalidReplicationFactorError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.messages.metadata import TopicMetadata

# Fixed: a job is found by its hash, also after partitions were added to the topic.
PARTITIONS = 16
_PAUSE_SECONDS = 0.2
_LAG_MS = 3_600_000
_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "16777216",
    "segment.ms": "3600000",
    # The first of several claims in a batch counts, so none may be removed while it matters.
    "min.compaction.lag.ms": str(_LAG_MS),
}


class DecisionsTopicError(RuntimeError):
    """The topic of decisions cannot be read, has lost records, or holds something else."""


@dataclass(frozen=True)
class Safety:
    """A decision is kept as safely as the transactions that follow from it."""

    replicas: int
    in_sync: int


async def create(admin: Admin, topic: str) -> str:
    """Create the topic unless it exists; returns why that is not possible yet, or ""."""
    wanted = await _safety(admin)
    configs = _CONFIGS | {"min.insync.replicas": str(wanted.in_sync)}
    try:
        await admin.create_topic(topic, PARTITIONS, wanted.replicas, configs=configs)
    except TopicAlreadyExistsError:
        pass  # another task was first
    except InvalidReplicationFactorError as error:
        return str(error)  # brokers are missing that will be back
    return ""


async def check(admin: Admin, topic: str) -> None:
    """Raise DecisionsTopicError, with all reasons, if the topic cannot keep decisions."""
    described, configs = await _described(admin, topic)
    if reasons := faults(described, configs, await _safety(admin)):
        raise DecisionsTopicError(
            f"{topic!r} cannot keep decisions: {'; '.join(reasons)}. Nothing is written. Change"
            " that, or choose another decisionsTopic and let the sink create it"
        )


def faults(topic: TopicMetadata, configs: Mapping[str, str], wanted: Safety) -> list[str]:
    """Why the topic cannot keep decisions."""
    found = []
    if len(topic.partitions) < PARTITIONS:
        found.append(f"it has {len(topic.partitions)} partitions and needs {PARTITIONS}")
    replicas = min((len(p.replicas) for p in topic.partitions), default=0)
    if replicas < wanted.replicas:
        found.append(f"it has {replicas} replicas and needs {wanted.replicas}")
    in_sync = int(configs["min.insync.replicas"])
    if in_sync < wanted.in_sync:
        found.append(f"its min.insync.replicas is {in_sync} and must be {wanted.in_sync} or more")
    if in_sync > max(replicas, wanted.in_sync):
        found.append(f"its min.insync.replicas is {in_sync}, more than its {replicas} replicas")
    if configs["cleanup.policy"] != "compact":
        found.append(f"its cleanup.policy is {configs['cleanup.policy']} and must be compact")
    if int(configs["min.compaction.lag.ms"]) < _LAG_MS:
        lag = configs["min.compaction.lag.ms"]
        found.append(f"its min.compaction.lag.ms is {lag} and must be {_LAG_MS} or more")
    return found


async def _described(admin: Admin, topic: str) -> tuple[TopicMetadata, dict[str, str]]:
    """Asked again until the broker that is asked knows it: they learn of topics one by one."""
    while True:
        try:
            described = await admin.describe_topic(topic)
            return described, {s.name: s.value for s in await admin.describe_configs(topic)}
        except UnknownTopicOrPartitionError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _safety(admin: Admin) -> Safety:
    """From the first broker that answers: one that has died stays registered for a while."""
    *others, last = (await admin.describe_cluster()).brokers
    for broker in others:
        with suppress(BarnabasError):
            return await _safety_of(admin, broker.broker_id)
    return await _safety_of(admin, last.broker_id)


async def _safety_of(admin: Admin, broker_id: int) -> Safety:
    settings = {s.name: s.value for s in await admin.describe_broker_configs(broker_id)}
    return Safety(
        int(settings["transaction.state.log.replication.factor"]),
        int(settings["transaction.state.log.min.isr"]),
    )

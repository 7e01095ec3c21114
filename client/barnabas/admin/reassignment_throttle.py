"""Throttles of reassignments (KIP-73): set before one starts, lifted when none is in progress."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from barnabas_common.errors import BarnabasError, MaybeApplied, UnknownTopicOrPartitionError
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.admin import Admin
from barnabas.admin.config_resource import ConfigResource

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"


def throttled_replicas(
    now: Mapping[TopicPartition, Sequence[int]], targets: Mapping[TopicPartition, Sequence[int]]
) -> dict[str, dict[str, str]]:
    """The two lists of each topic with replicas to copy: the possible senders and the receivers."""
    leaders: dict[str, list[str]] = defaultdict(list)
    followers: dict[str, list[str]] = defaultdict(list)
    for partition, target in sorted(targets.items()):
        present = now.get(partition, ())
        adding = [broker for broker in target if broker not in present]
        if adding:
            leaders[partition.topic] += [f"{partition.partition}:{b}" for b in present]
            followers[partition.topic] += [f"{partition.partition}:{b}" for b in adding]
    return {
        topic: {LEADERS: ",".join(leaders[topic]), FOLLOWERS: ",".join(followers[topic])}
        for topic in leaders
    }


async def set_throttle(
    admin: Admin, targets: Mapping[TopicPartition, Sequence[int]], rate: int
) -> None:
    """Limit the copying by these reassignments, and by those in progress, to `rate` bytes a second
    on each broker and in each direction."""
    topics = await admin.describe_topics({partition.topic for partition in targets})
    now = {
        TopicPartition(topic.topic, found.partition): list(found.replicas)
        for topic in topics
        for found in topic.partitions
    }
    ongoing = await admin.list_partition_reassignments()
    wanted = dict(targets)
    for partition, found in ongoing.items():
        now[partition] = [r for r in found.replicas if r not in found.adding_replicas]
        wanted.setdefault(partition, found.replicas)
    await admin.incremental_alter_configs(
        ConfigResource.all_brokers(), dict.fromkeys(RATES, str(rate))
    )
    for topic, lists in throttled_replicas(now, wanted).items():
        await admin.incremental_alter_configs(ConfigResource.topic(topic), lists)


async def reassign_throttled(
    admin: Admin, targets: Mapping[TopicPartition, Sequence[int]], rate: int
) -> None:
    """Start these reassignments with a throttle; if they are refused, none is left behind.

    It stays while other reassignments are in progress, and after an error that does not tell
    whether these have started.
    """
    try:
        await set_throttle(admin, targets, rate)
        await admin.alter_partition_reassignments(targets)
    except MaybeApplied:
        raise
    except BarnabasError:
        await lift_if_done(admin)
        raise


async def lift_if_done(admin: Admin) -> list[str]:
    """Remove all throttles unless a reassignment is in progress; returns whose they were."""
    if await admin.list_partition_reassignments():
        return []
    return await lift_throttle(admin, await admin.list_topics())


async def lift_throttle(admin: Admin, topics: Iterable[str]) -> list[str]:
    """Remove the throttles of these topics, and the rates; returns the topics that had one."""
    lifted = []
    for topic in topics:
        with suppress(UnknownTopicOrPartitionError):  # deleted meanwhile
            if await _lift_from(admin, topic):
                lifted.append(topic)
    rates = {config.name for config in await admin.describe_cluster_default_configs()}
    if rates & set(RATES):
        await admin.incremental_alter_configs(
            ConfigResource.all_brokers(), dict.fromkeys(sorted(rates & set(RATES)))
        )
    return lifted


async def _lift_from(admin: Admin, topic: str) -> bool:
    described = {config.name: config for config in await admin.describe_configs(topic)}
    throttled = [name for name in (LEADERS, FOLLOWERS) if described[name].source == "topic"]
    if throttled:
        await admin.incremental_alter_configs(ConfigResource.topic(topic), dict.fromkeys(throttled))
    return bool(throttled)

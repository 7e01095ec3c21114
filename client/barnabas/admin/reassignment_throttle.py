"""Throttles of reassignments (KIP-73): set before one starts, lifted when none is in progress."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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


async def lift_throttle(admin: Admin, topics: Iterable[str]) -> list[str]:
    """Remove the throttles of these topics, and the rates; returns the topics that had one."""
    lifted = []
    for topic in topics:
        described = {config.name: config for config in await admin.describe_configs(topic)}
        throttled = [name for name in (LEADERS, FOLLOWERS) if described[name].source == "topic"]
        if throttled:
            await admin.incremental_alter_configs(
                ConfigResource.topic(topic), dict.fromkeys(throttled)
            )
            lifted.append(topic)
    rates = {config.name for config in await admin.describe_cluster_default_configs()}
    if rates & set(RATES):
        await admin.incremental_alter_configs(
            ConfigResource.all_brokers(), dict.fromkeys(sorted(rates & set(RATES)))
        )
    return lifted

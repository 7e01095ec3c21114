"""What an assignor is given and gives: plain data, the same for all four."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from barnabas_common.topic_partition import TopicPartition

# By topic, for each partition by number: the racks of its replicas.
PartitionRacks = Mapping[str, Sequence[frozenset[str]]]
Assignment = dict[str, list[TopicPartition]]

NO_GENERATION = -1


@dataclass(frozen=True)
class Subscription:
    """What a member tells the leader of its group.

    `owned_partitions` and `generation`: what it holds, and since which generation (KIP-429, 792).
    `user_data`: what its assignor adds. `group_instance_id` comes from the coordinator.
    """

    topics: tuple[str, ...]
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack_id: str = ""
    user_data: bytes | None = None
    group_instance_id: str = ""


Subscriptions = Mapping[str, Subscription]


def _no_user_data(owned: Sequence[TopicPartition], generation: int) -> bytes | None:
    return None


@dataclass(frozen=True)
class Assignor:
    """`assign(partitions, subscriptions)` gives every member its partitions.

    `cooperative`: members keep what they own while the group rebalances (KIP-429).
    `user_data(owned, generation)`: what a member sends along when it joins.
    """

    name: str
    assign: Callable[[PartitionRacks, Subscriptions], Assignment]
    cooperative: bool = False
    user_data: Callable[[Sequence[TopicPartition], int], bytes | None] = _no_user_data


def in_member_order(subscriptions: Subscriptions) -> list[str]:
    """Static members by their instance ids, then the others by their member ids (KIP-345)."""

    def key(member: str) -> tuple[bool, str]:
        instance = subscriptions[member].group_instance_id
        return not instance, instance or member

    return sorted(subscriptions, key=key)


def known_topics(partitions: PartitionRacks, subscriptions: Subscriptions) -> list[str]:
    """The topics that exist and that a member reads, sorted."""
    wanted = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    return sorted(topic for topic in wanted if partitions.get(topic))

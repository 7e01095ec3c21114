"""Who owned which partition before: what the sticky assignors preserve."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors.assignor import (
    NO_GENERATION,
    PartitionRacks,
    Subscription,
    Subscriptions,
)


class MemberData(NamedTuple):
    """What a member says it owns, and since which generation (None: it does not say)."""

    partitions: Sequence[TopicPartition]
    generation: int | None


@dataclass
class Owners:
    """By member, in the order of their ids: what each owns by the newest valid claim.

    `disputed`: claimed by two members in one generation, and owned by neither (KIP-792).
    """

    owned: dict[str, list[TopicPartition]]
    data: dict[str, MemberData]
    disputed: set[TopicPartition] = field(default_factory=set)

    @property
    def newest_generation(self) -> int:
        return max((_of(data) for data in self.data.values()), default=NO_GENERATION)


def owners(
    partitions: PartitionRacks,
    subscriptions: Subscriptions,
    read: Callable[[Subscription], MemberData],
) -> Owners:
    """Settle the claims of all members. A claim to a partition that does not exist is dropped."""
    data = {member: read(subscriptions[member]) for member in sorted(subscriptions)}
    found = Owners({member: [] for member in data}, data)
    claimed: dict[TopicPartition, str] = {}
    for member, (claims, _) in data.items():
        generation = _of(data[member])
        for tp in claims:
            if not 0 <= tp.partition < len(partitions.get(tp.topic, ())):
                continue
            other = claimed.get(tp)
            # The generation of the one who claimed first is that of its subscription, as in Kafka.
            held_since = NO_GENERATION if other is None else subscriptions[other].generation
            if other is not None and generation < held_since:
                continue
            claimed[tp] = member
            if other is not None and tp in found.owned[other]:
                found.owned[other].remove(tp)
            if other is not None and generation == held_since:
                found.disputed.add(tp)
            else:
                found.owned[member].append(tp)
    return found


def same_topics(subscriptions: Subscriptions) -> bool:
    """Whether all members subscribe to the same topics."""
    return len({frozenset(subscription.topics) for subscription in subscriptions.values()}) <= 1


def _of(data: MemberData) -> int:
    return NO_GENERATION if data.generation is None else data.generation

"""Sticky and cooperative-sticky: balanced, and as much as possible stays where it was.

Both give the same partitions to the same members. With cooperative-sticky members keep what they
own while they rebalance, so a partition that changes its owner is not given to any member at first:
its old owner gives it up and joins again, and the next assignment hands it over (KIP-429).
"""

import struct
from collections.abc import Callable, Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    Assignor,
    PartitionRacks,
    Subscription,
    Subscriptions,
    known_topics,
)
from barnabas.group.assignors.sticky_constrained import ConstrainedAssignment
from barnabas.group.assignors.sticky_general import GeneralAssignment
from barnabas.group.assignors.sticky_owners import MemberData, owners, same_topics
from barnabas.group.assignors.sticky_racks import Racks
from barnabas.group.wire import Reader, Truncated, Writer, by_topic


def assign_sticky(partitions: PartitionRacks, subscriptions: Subscriptions) -> Assignment:
    """Kafka's `StickyAssignor`: members name their last partitions in the user data."""
    return _balance(partitions, subscriptions, _from_user_data)[0]


def assign_cooperatively(partitions: PartitionRacks, subscriptions: Subscriptions) -> Assignment:
    """Kafka's `CooperativeStickyAssignor`: members name the partitions they hold."""
    assignment, transferring = _balance(partitions, subscriptions, _from_subscription)
    if transferring is None:
        transferring = _transferring(subscriptions, assignment)
    for tp, member in transferring.items():
        assignment[member].remove(tp)
    return assignment


def _balance(
    partitions: PartitionRacks,
    subscriptions: Subscriptions,
    read: Callable[[Subscription], MemberData],
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """The assignment, and the partitions that change their owner if they are known already."""
    read_here = {topic: partitions[topic] for topic in known_topics(partitions, subscriptions)}
    claims = owners(read_here, subscriptions, read)
    racks = Racks(read_here, subscriptions)
    if same_topics(subscriptions):
        constrained = ConstrainedAssignment(read_here, racks, claims)
        return constrained.build(), constrained.transferring
    return GeneralAssignment(read_here, subscriptions, racks, claims).build(), None


def _transferring(
    subscriptions: Subscriptions, assignment: Assignment
) -> dict[TopicPartition, str]:
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, given in assignment.items():
        owned = set(subscriptions[member].owned_partitions)
        added.update((tp, member) for tp in given if tp not in owned)
        revoked |= owned.difference(given)
    return {tp: member for tp, member in added.items() if tp in revoked}


def sticky_user_data(owned: Sequence[TopicPartition], generation: int) -> bytes | None:
    """The schema `STICKY_ASSIGNOR_USER_DATA_V1`: the last assignment and its generation."""
    if generation == NO_GENERATION:
        return None
    writer = Writer()
    writer.topic_partitions(by_topic(owned))
    writer.int32(generation)
    return writer.content()


def cooperative_user_data(owned: Sequence[TopicPartition], generation: int) -> bytes | None:
    """The schema `COOPERATIVE_STICKY_ASSIGNOR_USER_DATA_V0`: the generation."""
    return struct.pack(">i", generation)


def _from_user_data(subscription: Subscription) -> MemberData:
    if not subscription.user_data:
        return MemberData((), None)
    reader = Reader(subscription.user_data)
    try:
        partitions = reader.topic_partitions()
    except Truncated:
        return MemberData((), NO_GENERATION)
    try:
        return MemberData(partitions, reader.int32())
    except Truncated:  # the older schema has no generation
        return MemberData(partitions, None)


def _from_subscription(subscription: Subscription) -> MemberData:
    owned = subscription.owned_partitions
    if subscription.generation >= 0:
        return MemberData(owned, subscription.generation)
    if subscription.user_data is None:
        return MemberData(owned, None)
    try:
        return MemberData(owned, Reader(subscription.user_data).int32())
    except Truncated:
        return MemberData(owned, NO_GENERATION)


STICKY = Assignor("sticky", assign_sticky, user_data=sticky_user_data)
COOPERATIVE_STICKY = Assignor(
    "cooperative-sticky", assign_cooperatively, cooperative=True, user_data=cooperative_user_data
)

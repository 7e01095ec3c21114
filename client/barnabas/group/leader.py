"""What the leader of a group does: it assigns the partitions of all members.

The leader is a member like the others; the coordinator picks the first that joined. It also watches
the topics of the whole group, and calls for a rebalance when partitions come or go.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas_common.messages.groups import JoinGroupMember, SyncGroupAssignment
from barnabas_common.messages.metadata import MetadataRequest

from barnabas.cluster import Cluster, ClusterMetadata
from barnabas.group.assignors import Assignment, Assignor, PartitionRacks, Subscription
from barnabas.group.protocol import MalformedProtocol, decode_subscription, encode_assignment

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Assigned:
    """What a leader decided, and the partitions it knew then."""

    assignments: list[SyncGroupAssignment]
    topics: tuple[str, ...]
    partitions: PartitionRacks


def read_subscriptions(members: Iterable[JoinGroupMember]) -> dict[str, Subscription]:
    """Malformed bytes subscribe to nothing: one broken member must not stop the group."""
    found = {}
    for member in members:
        try:
            subscription = decode_subscription(member.metadata, member.group_instance_id)
        except MalformedProtocol as error:
            logger.error("member %s gets no partitions: %s", member.member_id, error)
            subscription = Subscription((), group_instance_id=member.group_instance_id)
        found[member.member_id] = subscription
    return found


def partitions_of(metadata: ClusterMetadata, topics: Iterable[str]) -> PartitionRacks:
    """The known partitions of the topics, with the racks of their replicas."""
    racks = {broker_id: broker.rack for broker_id, broker in metadata.brokers.items()}
    return {
        topic: tuple(
            frozenset(rack for broker in partition.replicas if (rack := racks.get(broker)))
            for partition in metadata.topics[topic].partitions
        )
        for topic in topics
        if topic in metadata.topics
    }


def changed(
    before: PartitionRacks, metadata: ClusterMetadata, topics: Iterable[str], racks_matter: bool
) -> str:
    """What differs from what the leader assigned, in words; nothing if nothing that matters."""
    now = partitions_of(metadata, topics)
    for topic in sorted(before.keys() | now.keys()):
        old, new = before.get(topic, ()), now.get(topic, ())
        if len(old) != len(new):
            return f"topic {topic!r} has {len(new)} partitions, not {len(old)}"
        if racks_matter and tuple(old) != tuple(new):
            return f"replicas of topic {topic!r} are in other racks"
    return ""


async def assign(
    cluster: Cluster, assignor: Assignor, members: Iterable[JoinGroupMember]
) -> Assigned:
    """Every member's partitions. Topics that only other members read are looked up first."""
    subscriptions = read_subscriptions(members)
    topics = tuple(sorted({topic for s in subscriptions.values() for topic in s.topics}))
    cluster.watch(topics)
    if any(topic not in cluster.metadata.topics for topic in topics):
        await cluster.refresh(MetadataRequest(list(topics)))
    partitions = partitions_of(cluster.metadata, topics)
    assignment = assignor.assign(partitions, subscriptions)
    for topic in topics:
        if topic not in partitions:
            logger.warning("topic %r does not exist: no member gets partitions of it", topic)
    return Assigned(_encoded(assignment), topics, partitions)


def _encoded(assignment: Assignment) -> list[SyncGroupAssignment]:
    return [
        SyncGroupAssignment(member, encode_assignment(sorted(given)))
        for member, given in assignment.items()
    ]

"""What the leader of a group does: it assigns the partitions of all members.

The leader is a member like the others; the coordinator picks the first that joined. It also watches
the topics of the whole group, and calls for a rebalance when partitions come or go.

Beyond Kafka, it calls for the second rebalance of a cooperative assignor too. Kafka leaves that to
the member that gives partitions up (KIP-429). If that member is static and restarts just then, it
gets its assignment back without a rebalance (KIP-345), and what it gave up would have no reader.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from barnabas_common.messages.groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    JoinGroupMember,
    SyncGroupAssignment,
)
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster, ClusterMetadata
from barnabas.group.assignors import Assignment, Assignor, PartitionRacks, Subscription
from barnabas.group.coordinator import GroupCoordinator
from barnabas.group.protocol import (
    MalformedProtocol,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Assigned:
    """What a leader decided, and the partitions it knew then.

    `without_reader`: partitions that no member got; a cooperative assignor withholds what another
    member must give up first.
    """

    assignments: list[SyncGroupAssignment]
    topics: tuple[str, ...]
    partitions: PartitionRacks
    without_reader: tuple[TopicPartition, ...] = ()


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
    free = _without_reader(partitions, assignment.values())
    return Assigned(_encoded(assignment), topics, partitions, free)


async def described(coordinator: GroupCoordinator, led: Assigned) -> Assigned:
    """The same with the partitions that no member reads now; none if the group rebalances anyway.

    A static leader that came back has not assigned, so it must ask. Raises what `ask` raises.
    """
    request = DescribeGroupsRequest([coordinator.group_id], coordinator.client_id)
    response: DescribeGroupsResponse = await coordinator.ask(
        request,
        coordinator.cluster.request_timeout,
        lambda answer: [group.error_code for group in answer.groups],
    )
    (group,) = response.groups
    if group.group_state != "Stable":
        return replace(led, without_reader=())
    given = [_read_assignment(member) for member in group.members]
    return replace(led, without_reader=_without_reader(led.partitions, given))


def _read_assignment(member: DescribedGroupMember) -> list[TopicPartition]:
    """A member with malformed bytes reads nothing."""
    try:
        return decode_assignment(member.member_assignment)
    except MalformedProtocol as error:
        logger.error("member %s reads no partitions: %s", member.member_id, error)
        return []


def _without_reader(
    partitions: PartitionRacks, given: Iterable[Iterable[TopicPartition]]
) -> tuple[TopicPartition, ...]:
    read = {tp for some in given for tp in some}
    known = (
        TopicPartition(topic, number)
        for topic in partitions
        for number in range(len(partitions[topic]))
    )
    return tuple(tp for tp in known if tp not in read)


def _encoded(assignment: Assignment) -> list[SyncGroupAssignment]:
    return [
        SyncGroupAssignment(member, encode_assignment(sorted(given)))
        for member, given in assignment.items()
    ]

"""Round robin: all partitions of all topics, dealt out to the members in turn."""

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors.assignor import (
    Assignment,
    Assignor,
    PartitionRacks,
    Subscriptions,
    in_member_order,
    known_topics,
)


def assign_in_turn(partitions: PartitionRacks, subscriptions: Subscriptions) -> Assignment:
    """Kafka's `RoundRobinAssignor`: a member that does not read a topic is passed over."""
    members = in_member_order(subscriptions)
    assignment: Assignment = {member: [] for member in subscriptions}
    turn = 0
    for topic in known_topics(partitions, subscriptions):
        for partition in range(len(partitions[topic])):
            while topic not in subscriptions[members[turn % len(members)]].topics:
                turn += 1
            assignment[members[turn % len(members)]].append(TopicPartition(topic, partition))
            turn += 1
    return assignment


ROUND_ROBIN = Assignor("roundrobin", assign_in_turn)

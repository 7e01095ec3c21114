"""What ZooKeeper holds, read directly from the simulated server's tree without a request."""

from dataclasses import dataclass

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

from barnabas_simulator.cluster import SimulatedCluster


@dataclass(frozen=True)
class PartitionState:
    """A partition's state znode, and its assigned replicas."""

    state: LeaderAndIsr
    replicas: tuple[int, ...]


def partition_states(cluster: SimulatedCluster) -> dict[TopicPartition, PartitionState]:
    """Return every partition that has a state znode."""
    tree = cluster.zookeeper.tree
    topics = tree.find("/brokers/topics")
    found = {}
    for topic in sorted(topics.children) if topics is not None else []:
        assignment = znodes.decode_topic(topic, tree.node(znodes.topic_path(topic)).data)
        for number, replicas in assignment.partitions.items():
            partition = TopicPartition(topic, number)
            node = tree.find(znodes.state_path(partition))
            if node is not None:
                state = znodes.decode_state(partition, node.data, node.version)
                found[partition] = PartitionState(state, tuple(replicas.replicas))
    return found


def registered(cluster: SimulatedCluster) -> dict[int, znodes.Broker]:
    """Return the running brokers whose znode exists, possibly of an earlier incarnation."""
    tree = cluster.zookeeper.tree
    nodes = {b: tree.find(znodes.broker_path(b)) for b in cluster.running_brokers}
    return {
        broker_id: znodes.decode_broker(broker_id, node.data, node.czxid)
        for broker_id, node in nodes.items()
        if node is not None
    }


def controller(cluster: SimulatedCluster) -> int | None:
    """Return the broker that `/controller` names."""
    node = cluster.zookeeper.tree.find("/controller")
    if node is None:
        return None
    try:
        return znodes.decode_controller(node.data)
    except MalformedZnode:
        return None

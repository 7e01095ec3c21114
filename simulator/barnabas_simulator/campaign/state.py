"""What ZooKeeper holds, read straight from the simulated server's tree: nobody is asked."""

from dataclasses import dataclass

from barnabas.topic_partition import TopicPartition
from barnabas_controller import znodes
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.leader_and_isr import LeaderAndIsr

from barnabas_simulator.cluster import SimulatedCluster


@dataclass(frozen=True)
class PartitionState:
    """`written_at` is the zxid of the state's last change."""

    state: LeaderAndIsr
    replicas: tuple[int, ...]
    written_at: int


def partition_states(cluster: SimulatedCluster) -> dict[TopicPartition, PartitionState]:
    """Every partition of every topic that has a state."""
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
                found[partition] = PartitionState(state, tuple(replicas.replicas), node.mzxid)
    return found


def registered(cluster: SimulatedCluster) -> dict[int, int]:
    """The living brokers that are in ZooKeeper, perhaps by a session of an earlier life, with
    their broker epochs."""
    tree = cluster.zookeeper.tree
    nodes = {b: tree.find(znodes.broker_path(b)) for b in cluster.living}
    return {broker_id: node.czxid for broker_id, node in nodes.items() if node is not None}


def controller(cluster: SimulatedCluster) -> int | None:
    """The broker that `/controller` names."""
    node = cluster.zookeeper.tree.find("/controller")
    if node is None:
        return None
    try:
        return znodes.decode_controller(node.data)
    except MalformedZnode:
        return None

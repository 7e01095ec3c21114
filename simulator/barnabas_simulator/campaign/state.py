"""What ZooKeeper holds, read directly from the simulated server's tree without a request."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from barnabas_broker.server.broker import Broker
from barnabas_common.topic_name import INTERNAL_TOPICS
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.eligibility.eligible_leader_replicas import leader_eligibility
from barnabas_controller.eligibility.min_isr import MinimumIsr, minimum_isr, settings_of
from barnabas_controller.eligibility.raised_epoch import is_unconfirmed, may_lack_records
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.zookeeper.tree import Tree


@dataclass(frozen=True)
class PartitionState:
    """A partition's state znode, and its assigned replicas. `replacements`: registered eligible
    replicas that may lead once no member of the ISR has been registered for some time. `lost`: the
    brokers that know that their log of it is lost or damaged. `is_older`: the state may be older
    than what replicas hold. `may_lack`: the replicas that may lack acknowledged records then."""

    state: LeaderAndIsr
    replicas: tuple[int, ...]
    replacements: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    is_older: bool = False
    may_lack: tuple[int, ...] = ()


def partition_states(cluster: SimulatedCluster) -> dict[TopicPartition, PartitionState]:
    """Return every partition that has a state znode, without those whose znodes are damaged."""
    found = states_in(cluster.zookeeper.tree, registered(cluster))
    brokers = list(cluster.brokers().values())
    return {
        partition: replace(
            one,
            lost=tuple(b.broker_id for b in brokers if partition in b.log_manager.lost),
            is_older=one.is_older or _is_older(partition, one.state, brokers),
        )
        for partition, one in found.items()
    }


def _is_older(partition: TopicPartition, state: LeaderAndIsr, brokers: Iterable[Broker]) -> bool:
    """Whether a running broker's log has records of a later leader epoch."""
    logs = [broker.log_manager.get(partition) for broker in brokers]
    epochs = [log.leader_epochs.latest_epoch() for log in logs if log is not None]
    return any(epoch is not None and epoch > state.leader_epoch for epoch in epochs)


def states_in(
    tree: Tree, present: Mapping[int, znodes.Broker] | None = None
) -> dict[TopicPartition, PartitionState]:
    """Return the partitions of a tree; `present` brokers are registered."""
    topics = tree.find("/brokers/topics")
    found = {}
    for topic in sorted(topics.children) if topics is not None else []:
        with suppress(MalformedZnode):
            assignment = znodes.decode_topic(topic, tree.node(znodes.topic_path(topic)).data)
            for number, replicas in assignment.partitions.items():
                partition, assigned = TopicPartition(topic, number), tuple(replicas.replicas)
                with suppress(MalformedZnode):
                    known = _partition_state(tree, partition, assigned, present or {})
                    if known is not None:
                        found[partition] = known
    return found


def _partition_state(
    tree: Tree,
    partition: TopicPartition,
    assigned: tuple[int, ...],
    present: Mapping[int, znodes.Broker],
) -> PartitionState | None:
    node = tree.find(znodes.state_path(partition))
    if node is None:
        return None
    state = znodes.decode_state(partition, node.data, node.version, node.mzxid)
    minimum = _minimum_isr(tree, partition.topic, assigned)
    online = [broker_id for broker_id in assigned if broker_id in present]
    known = leader_eligibility(state, assigned, online, present, minimum)
    return PartitionState(
        state,
        assigned,
        known.replacements,
        is_older=is_unconfirmed(state, assigned, present),
        may_lack=tuple(b for b in online if may_lack_records(state, present[b])),
    )


def leader(cluster: SimulatedCluster, topic: str = "") -> int | None:
    """Return the leader of the first partition of a topic, or of the first that is not internal."""
    for partition, found in partition_states(cluster).items():
        if partition.topic == topic or not (topic or partition.topic in INTERNAL_TOPICS):
            return found.state.leader
    return None


def _minimum_isr(tree: Tree, topic: str, replicas: tuple[int, ...]) -> MinimumIsr:
    settings = [(path, tree.find(path)) for path in settings_of(topic)]
    version = max(
        (
            znodes.decode_minimum_since(path, node.data, node.mzxid)
            for path, node in settings
            if node is not None
        ),
        default=0,
    )
    own = settings[0][1]
    overrides = {} if own is None else znodes.decode_config("", own.data)
    return MinimumIsr(minimum_isr(overrides, 1, len(replicas)), version)


def registered(cluster: SimulatedCluster) -> dict[int, znodes.Broker]:
    """Return the running brokers with a sound znode, possibly of an earlier incarnation."""
    tree = cluster.zookeeper.tree
    nodes = {b: tree.find(znodes.broker_path(b)) for b in cluster.running_brokers}
    found = {}
    for broker_id, node in nodes.items():
        with suppress(MalformedZnode):
            if node is not None:
                found[broker_id] = znodes.decode_broker(broker_id, node.data, node.czxid)
    return found


def controller(cluster: SimulatedCluster) -> int | None:
    """Return the broker that `/controller` names."""
    node = cluster.zookeeper.tree.find("/controller")
    if node is None:
        return None
    try:
        return znodes.decode_controller(node.data)
    except MalformedZnode:
        return None

"""What the controller knows: a cache of ZooKeeper, and the states it derives from it.

Plain data, touched by the controller's event loop alone; made anew with every reign, so that
nothing of an earlier one can survive in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.topic_partition import TopicPartition

from barnabas_controller.leader_and_isr import LeaderAndIsr
from barnabas_controller.states import PartitionState, ReplicaState
from barnabas_controller.znodes import Broker, ReplicaAssignment, TopicZnode


class Replica(NamedTuple):
    """One broker's copy of one partition."""

    partition: TopicPartition
    broker_id: int


@dataclass
class ControllerContext:
    """The cluster as this reign sees it.

    `brokers` are the registered ones; `shutting_down` those of them that asked to stop. A broker
    in both still gets requests, and may serve what nobody else can, but is not online.
    `suspects` are lives of brokers (by id, the broker epoch) that are still registered and for
    whose death there is evidence: not online either, and it ends only with a new broker epoch.
    `failed_replicas` are those a live broker cannot open because their disk failed. `doubtful`: why
    the state znode of a partition cannot be trusted. `awaiting`: since when a partition waits for a
    better leader. `refused`: what the last refused election of a partition went by. Dicts to None
    are sets with an order.
    """

    brokers: dict[int, Broker] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    suspects: dict[int, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[Replica, ReplicaState] = field(default_factory=dict)
    failed_replicas: dict[int, dict[TopicPartition, None]] = field(default_factory=dict)
    topics_to_delete: dict[str, None] = field(default_factory=dict)
    deletion_started: dict[str, None] = field(default_factory=dict)
    deletion_ineligible: dict[str, None] = field(default_factory=dict)
    reassigning: dict[TopicPartition, None] = field(default_factory=dict)
    doubtful: dict[TopicPartition, str] = field(default_factory=dict)
    awaiting: dict[TopicPartition, float] = field(default_factory=dict)
    refused: dict[TopicPartition, tuple[object, ...]] = field(default_factory=dict)

    # Brokers

    def live_brokers(self) -> list[int]:
        """Registered, not shutting down and not suspected, by id."""
        return [b for b in sorted(self.brokers.keys() - self.shutting_down) if self.is_trusted(b)]

    def registered_brokers(self) -> list[int]:
        """Those that can be talked to, by id."""
        return sorted(self.brokers)

    def is_suspected(self, broker_id: int) -> bool:
        """Registered, with evidence that this very life of it is over."""
        broker = self.brokers.get(broker_id)
        return broker is not None and self.suspects.get(broker_id) == broker.epoch

    def is_trusted(self, broker_id: int) -> bool:
        """Registered, and nothing speaks against it."""
        return broker_id in self.brokers and not self.is_suspected(broker_id)

    def suspected_brokers(self) -> list[int]:
        """By id."""
        return [broker_id for broker_id in sorted(self.suspects) if self.is_suspected(broker_id)]

    def is_online(self, broker_id: int, partition: TopicPartition) -> bool:
        """Whether this broker can serve this partition."""
        return (
            self.is_trusted(broker_id)
            and broker_id not in self.shutting_down
            and partition not in self.failed_replicas.get(broker_id, ())
        )

    def online_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """In assignment order."""
        return tuple(r for r in self.replicas(partition) if self.is_online(r, partition))

    def offline_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """In assignment order."""
        return tuple(r for r in self.replicas(partition) if not self.is_online(r, partition))

    # Topics and partitions

    def set_topic(self, topic: str, node: TopicZnode) -> None:
        """Add a topic, or the new partitions of a known one; what is known stays."""
        if node.topic_id is not None:
            self.topic_ids.setdefault(topic, node.topic_id)
        self.assignments[topic] = {**node.partitions, **self.assignments.get(topic, {})}

    def remove_topic(self, topic: str) -> None:
        """Forget everything about a topic."""
        for replica in self.replicas_of_topic(topic):
            self.replica_states.pop(replica, None)
            self.failed_replicas.get(replica.broker_id, {}).pop(replica.partition, None)
        for partition in self.partitions([topic]):
            self.partition_states.pop(partition, None)
            self.leadership.pop(partition, None)
            self.reassigning.pop(partition, None)
            self.doubtful.pop(partition, None)
            self.awaiting.pop(partition, None)
            self.refused.pop(partition, None)
        self.assignments.pop(topic, None)
        self.topic_ids.pop(topic, None)
        self.topics_to_delete.pop(topic, None)
        self.deletion_started.pop(topic, None)
        self.deletion_ineligible.pop(topic, None)

    def partitions(self, topics: Iterable[str] | None = None) -> list[TopicPartition]:
        """All partitions of the topics, or of all topics."""
        return [
            TopicPartition(topic, partition)
            for topic in (self.assignments if topics is None else topics)
            for partition in self.assignments.get(topic, ())
        ]

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """No replicas at all if the partition is unknown."""
        unknown = ReplicaAssignment(())
        return self.assignments.get(partition.topic, {}).get(partition.partition, unknown)

    def set_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Of a known partition, which is being reassigned."""
        self.assignments[partition.topic][partition.partition] = assignment

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """The assigned brokers, the preferred leader first."""
        return self.assignment(partition).replicas

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        return [Replica(p, broker_id) for p in partitions for broker_id in self.replicas(p)]

    def replicas_of_topic(self, topic: str) -> list[Replica]:
        return self.replicas_of(self.partitions([topic]))

    def replicas_on(self, broker_ids: Sequence[int]) -> list[Replica]:
        """Everything assigned to these brokers."""
        return [r for r in self.replicas_of(self.partitions()) if r.broker_id in broker_ids]

    def is_to_be_deleted(self, topic: str) -> bool:
        """Whether somebody asked for its deletion."""
        return topic in self.topics_to_delete

    def is_being_deleted(self, topic: str) -> bool:
        """Until its reassignments are over a topic to be deleted is served as any other: they
        would wait for ever for a leader that nobody elects."""
        return self.is_to_be_deleted(topic) and not self.is_being_reassigned(topic)

    def is_being_reassigned(self, topic: str) -> bool:
        """Whether any of its partitions is on its way to other brokers."""
        return any(partition.topic == topic for partition in self.reassigning)

    # States

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: Replica) -> ReplicaState:
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def partitions_with_leaders(self) -> list[TopicPartition]:
        """All with a known leadership, of topics that are to stay."""
        return [p for p in self.leadership if not self.is_being_deleted(p.topic)]

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Those whose leader cannot serve, of topics that are to stay."""
        return [
            partition
            for partition, state in self.leadership.items()
            if not self.is_online(state.leader, partition)
            and not self.is_being_deleted(partition.topic)
        ]

    def partitions_without_leader(self) -> list[TopicPartition]:
        """New and offline ones, of topics that are to stay."""
        wanting = (PartitionState.NEW, PartitionState.OFFLINE)
        return [
            partition
            for partition, state in self.partition_states.items()
            if state in wanting and not self.is_being_deleted(partition.topic)
        ]

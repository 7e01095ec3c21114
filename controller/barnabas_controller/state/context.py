"""The controller's copy of what ZooKeeper holds, and the states that it derives from that.

Plain data, used only on the controller's event queue; every controller term creates a new one.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_common.messages.control import HeldRole
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.state.states import PartitionState, ReplicaState
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import Broker, ReplicaAssignment, TopicZnode

# A broker and its broker epoch.
Incarnation = tuple[int, int]


class Replica(NamedTuple):
    """One broker's copy of one partition."""

    partition: TopicPartition
    broker_id: int

    def __str__(self) -> str:
        return f"{self.partition} on broker {self.broker_id}"


@dataclass
class Asked:
    """Since when the replicas of a partition are asked what they hold, in seconds, and the broker
    epochs of those that have answered, by broker id.

    If there are `unknown` members of the ISR, only the leader is awaited, which knows its ISR.
    """

    since: float
    unknown: Collection[int] = ()
    answered: dict[int, int] = field(default_factory=dict)


@dataclass
class ControllerContext:
    """The cluster in one controller term; dicts to None are ordered sets, times are in seconds.

    `brokers` are the registered brokers, by id; all of them receive requests. `shutting_down` are
    those in a controlled shutdown. `suspects` has the broker epochs of suspected brokers; a
    suspected broker keeps only the leaderships that no other broker can take.

    `failed_replicas` has, for each broker, the partitions that it cannot use because their log
    directory failed, or their log is damaged or another topic's; the value is False if the
    directory failed.
    `invalid_states` says why a partition's state znode is invalid. `unreadable_topics` exist, and
    their own znodes are malformed.

    `awaiting` has the time since when a partition waits for a better leader, and `absent` the time
    since when a broker has no registration. `given_up` are the absent brokers that were awaited
    long enough (`absence.py`). `refused` is what the last refused election of a partition was
    decided from. `held_roles` says what replicas hold that refused a role, by broker id, until a
    leader is elected above it (`epoch_refusals.py`). `unconfirmed` are the partitions whose states
    may come from an older copy of ZooKeeper, with the answers of the replicas that are
    asked (`unconfirmed_states.py`). `told_logs` are the partitions whose members of the ISR all
    lost records, with what the replicas that are asked told of their logs: the leader epoch of the
    last record and the log end offset, None before they answer (`log_queries.py`).
    """

    brokers: dict[int, Broker] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    suspects: dict[int, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    unreadable_topics: dict[str, None] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[Replica, ReplicaState] = field(default_factory=dict)
    failed_replicas: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    topics_to_delete: dict[str, None] = field(default_factory=dict)
    deletion_started: dict[str, None] = field(default_factory=dict)
    deletion_ineligible: dict[str, None] = field(default_factory=dict)
    reassigning: dict[TopicPartition, None] = field(default_factory=dict)
    invalid_states: dict[TopicPartition, str] = field(default_factory=dict)
    awaiting: dict[TopicPartition, float] = field(default_factory=dict)
    absent: dict[int, float] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    refused: dict[TopicPartition, tuple[object, ...]] = field(default_factory=dict)
    held_roles: dict[TopicPartition, dict[int, HeldRole]] = field(default_factory=dict)
    unconfirmed: dict[TopicPartition, Asked] = field(default_factory=dict)
    told_logs: dict[TopicPartition, dict[Incarnation, tuple[int, int] | None]] = field(
        default_factory=dict
    )

    # Brokers

    def register(self, broker: Broker) -> None:
        """Add a broker that came up or restarted."""
        self.brokers[broker.broker_id] = broker
        self.failed_replicas.pop(broker.broker_id, None)
        self.absent.pop(broker.broker_id, None)
        self.given_up.discard(broker.broker_id)

    def registered_brokers(self) -> list[int]:
        """The brokers with a znode under `/brokers/ids`, sorted."""
        return sorted(self.brokers)

    def is_suspected(self, broker_id: int) -> bool:
        """Whether the broker is registered and its present broker epoch is suspected."""
        broker = self.brokers.get(broker_id)
        return broker is not None and self.suspects.get(broker_id) == broker.epoch

    def suspected_brokers(self) -> list[int]:
        """The registered brokers whose present broker epoch is suspected, sorted."""
        return [broker_id for broker_id in sorted(self.suspects) if self.is_suspected(broker_id)]

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered, not suspected and not shutting down."""
        return (
            broker_id in self.brokers
            and broker_id not in self.shutting_down
            and not self.is_suspected(broker_id)
        )

    def alive_brokers(self) -> list[int]:
        """The brokers that are alive, sorted."""
        return [broker_id for broker_id in sorted(self.brokers) if self.is_alive(broker_id)]

    def is_online(self, broker_id: int, partition: TopicPartition) -> bool:
        """Whether the broker is alive and the partition's log directory there has not failed."""
        failed = self.failed_replicas.get(broker_id, ())
        return self.is_alive(broker_id) and partition not in failed

    def online_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """The brokers of the online replicas, in assignment order."""
        return tuple(r for r in self.replicas(partition) if self.is_online(r, partition))

    def undamaged_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """The brokers of the replicas whose log is not damaged, in assignment order.

        A damaged log is truncated before its replica fetches again, and may lose committed records.
        """
        failed = self.failed_replicas
        return tuple(r for r in self.replicas(partition) if not failed.get(r, {}).get(partition))

    def offline_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """The brokers of the offline replicas, in assignment order."""
        return tuple(r for r in self.replicas(partition) if not self.is_online(r, partition))

    # Topics and partitions

    def set_topic(self, topic: str, node: TopicZnode) -> None:
        """Add a topic, or the new partitions of a known one; its known partitions do not change."""
        if node.topic_id is not None:
            self.topic_ids.setdefault(topic, node.topic_id)
        self.assignments[topic] = {**node.partitions, **self.assignments.get(topic, {})}
        self.unreadable_topics.pop(topic, None)

    def note_unreadable(self, present: Iterable[str]) -> None:
        """Take those of the `present` topics that are not known for the unreadable ones."""
        unreadable = (topic for topic in present if topic not in self.assignments)
        self.unreadable_topics = dict.fromkeys(unreadable)

    def remove_topic(self, topic: str) -> None:
        """Remove all data of a topic."""
        for replica in self.replicas_of_topic(topic):
            self.replica_states.pop(replica, None)
            self.failed_replicas.get(replica.broker_id, {}).pop(replica.partition, None)
        for partition in self.partitions([topic]):
            self.partition_states.pop(partition, None)
            self.leadership.pop(partition, None)
            self.reassigning.pop(partition, None)
            self.invalid_states.pop(partition, None)
            self.awaiting.pop(partition, None)
            self.refused.pop(partition, None)
            self.held_roles.pop(partition, None)
            self.unconfirmed.pop(partition, None)
            self.told_logs.pop(partition, None)
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
        """The partition's assignment, which has no replicas if the partition is unknown."""
        unknown = ReplicaAssignment(())
        return self.assignments.get(partition.topic, {}).get(partition.partition, unknown)

    def set_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Replace the assignment of a known partition."""
        self.assignments[partition.topic][partition.partition] = assignment

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """The assigned brokers, the preferred replica first."""
        return self.assignment(partition).replicas

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        return [Replica(p, broker_id) for p in partitions for broker_id in self.replicas(p)]

    def replicas_of_topic(self, topic: str) -> list[Replica]:
        return self.replicas_of(self.partitions([topic]))

    def replicas_on(self, broker_ids: Sequence[int]) -> list[Replica]:
        """All replicas assigned to these brokers."""
        return [r for r in self.replicas_of(self.partitions()) if r.broker_id in broker_ids]

    def is_to_be_deleted(self, topic: str) -> bool:
        """Whether its deletion has been requested."""
        return topic in self.topics_to_delete

    def is_being_deleted(self, topic: str) -> bool:
        """Whether the topic is to be deleted and no reassignment delays the deletion.

        Until its reassignments end it needs leaders like any other topic, or they would never end.
        """
        return self.is_to_be_deleted(topic) and not self.is_being_reassigned(topic)

    def is_being_reassigned(self, topic: str) -> bool:
        """Whether any of its partitions is being reassigned."""
        return any(partition.topic == topic for partition in self.reassigning)

    # States

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        """The state of a partition, NON_EXISTENT if it is unknown."""
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: Replica) -> ReplicaState:
        """The state of a replica, NON_EXISTENT if it is unknown."""
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def partitions_with_leaders(self) -> list[TopicPartition]:
        """All partitions with a known leadership, without those of topics being deleted."""
        return [p for p in self.leadership if not self.is_being_deleted(p.topic)]

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """The partitions whose leader is offline, without those of topics being deleted."""
        return [
            partition
            for partition, state in self.leadership.items()
            if not self.is_online(state.leader, partition)
            and not self.is_being_deleted(partition.topic)
        ]

    def partitions_without_leader(self) -> list[TopicPartition]:
        """The new and the offline partitions, without those of topics being deleted."""
        wanting = (PartitionState.NEW, PartitionState.OFFLINE)
        return [
            partition
            for partition, state in self.partition_states.items()
            if state in wanting and not self.is_being_deleted(partition.topic)
        ]

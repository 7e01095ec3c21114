"""What is known of a partition before the reasoning begins: plain data, gathered by the admin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.events import Event, EventKind
from barnabas.messages.metadata import PartitionMetadata
from barnabas.messages.replicas import ReplicaDescription
from barnabas.topic_partition import TopicPartition

NOBODY = -1


@dataclass(frozen=True)
class PartitionView:
    """`metadata` is what the controller has told the brokers; `live` are the registered brokers.

    `replicas` and `events` hold what each broker said that answered, `silent` why others did not.
    `forgotten_ms`: up to when a broker has forgotten what happened, where it has.
    """

    topic_partition: TopicPartition
    metadata: PartitionMetadata
    controller_id: int
    live: Sequence[int]
    replicas: Mapping[int, ReplicaDescription] = field(default_factory=dict)
    events: Sequence[Event] = ()
    silent: Mapping[int, str] = field(default_factory=dict)
    forgotten_ms: Mapping[int, int] = field(default_factory=dict)

    @property
    def leader(self) -> ReplicaDescription | None:
        """What the leader says of itself; of two that believe to lead, the newer."""
        leaders = [replica for replica in self.replicas.values() if replica.is_leader]
        return max(leaders, key=lambda replica: replica.leader_epoch, default=None)

    @property
    def leader_id(self) -> int:
        """Who leads, by its own word or else by the controller's; -1: nobody."""
        for broker_id, replica in self.replicas.items():
            if replica is self.leader:
                return broker_id
        return self.metadata.leader_id

    @property
    def leader_epoch(self) -> int:
        leader = self.leader
        return self.metadata.leader_epoch if leader is None else leader.leader_epoch

    @property
    def isr(self) -> list[int]:
        leader = self.leader
        return list(self.metadata.in_sync_replicas if leader is None else leader.in_sync_replicas)

    def told(self, *kinds: EventKind) -> list[Event]:
        """The events of this partition of these kinds, oldest first; not those of an earlier topic
        of that name."""
        key, begin = self.topic_partition, self._begin
        return [
            event
            for event in self.events
            if event.topic_partition == key and event.kind in kinds and event.time_ms >= begin
        ]

    @property
    def _begin(self) -> int:
        """When a topic of that name was last deleted; 0: never, as far as is remembered."""
        deleted = [
            event.time_ms
            for event in self.events
            if event.kind is EventKind.TOPIC_DELETED
            and event.details.get("topic") == self.topic_partition.topic
        ]
        return max(deleted, default=0)

    def told_of_brokers(self, *kinds: EventKind) -> list[Event]:
        """The events of no partition of these kinds, oldest first."""
        return [e for e in self.events if e.topic_partition is None and e.kind in kinds]

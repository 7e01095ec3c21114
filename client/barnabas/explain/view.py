"""The known facts of a partition before the reasoning: plain data from the admin client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_common.events import Event, EventKind
from barnabas_common.messages.metadata import PartitionMetadata
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.topic_partition import TopicPartition


@dataclass(frozen=True)
class OpenTransactionView:
    """A transaction that is open in the leader's log, and what its coordinator says of it.

    `since_ms` is when it began, or the time of its newest batch here. Without `will_end` no
    coordinator knows that it is open in this partition. The fields after it are the coordinator's.
    """

    producer_id: int
    producer_epoch: int
    start_offset: int
    since_ms: int
    transactional_id: str = ""
    will_end: bool = False
    coordinator: int = -1
    state: str = ""
    start_ms: int = -1
    timeout_ms: int = 0


@dataclass(frozen=True)
class PartitionView:
    """`metadata` is what the controller sent to the brokers; `live` are the registered brokers.

    `replicas` and `events` hold the answers of brokers, `errors` the errors of those that did not
    answer. `forgotten_ms`: up to when a broker has dropped its events, if it has.
    `silent_coordinators`: the brokers that could not be asked about `open_transactions`, and why.
    `without_coordinator`: the partitions of `__transaction_state` that no broker leads.
    """

    topic_partition: TopicPartition
    metadata: PartitionMetadata
    controller_id: int
    live: Sequence[int]
    replicas: Mapping[int, ReplicaDescription] = field(default_factory=dict)
    events: Sequence[Event] = ()
    errors: Mapping[int, str] = field(default_factory=dict)
    forgotten_ms: Mapping[int, int] = field(default_factory=dict)
    open_transactions: Sequence[OpenTransactionView] = ()
    silent_coordinators: Mapping[int, str] = field(default_factory=dict)
    without_coordinator: Sequence[TopicPartition] = ()
    now_ms: int = 0

    @property
    def leader(self) -> ReplicaDescription | None:
        """The leader's own description; if two replicas act as leader, the newer one's."""
        leaders = [replica for replica in self.replicas.values() if replica.is_leader]
        return max(leaders, key=lambda replica: replica.leader_epoch, default=None)

    @property
    def leader_id(self) -> int:
        """The leader according to itself, or else to the controller; -1 if there is none."""
        for broker_id, replica in self.replicas.items():
            if replica is self.leader:
                return broker_id
        return self.metadata.leader_id

    @property
    def leader_epoch(self) -> int:
        """The leader epoch according to the leader, or else to the controller."""
        leader = self.leader
        return self.metadata.leader_epoch if leader is None else leader.leader_epoch

    @property
    def holds_readers_back(self) -> bool:
        """Whether read_committed readers get less than what is committed."""
        leader = self.leader
        return leader is not None and 0 <= leader.last_stable_offset < leader.high_watermark

    @property
    def isr(self) -> list[int]:
        """The ISR according to the leader, or else to the controller."""
        leader = self.leader
        return list(self.metadata.in_sync_replicas if leader is None else leader.in_sync_replicas)

    def partition_events(self, *kinds: EventKind) -> list[Event]:
        """The events of this partition of these kinds, oldest first, without those of an earlier
        topic of that name."""
        key, deleted = self.topic_partition, self._deleted_ms
        return [
            event
            for event in self.events
            if event.topic_partition == key and event.kind in kinds and event.time_ms >= deleted
        ]

    @property
    def _deleted_ms(self) -> int:
        """When a topic of that name was last deleted, in ms; 0 if no deletion is known."""
        deleted = [
            event.time_ms
            for event in self.events
            if event.kind is EventKind.TOPIC_DELETED
            and event.details.get("topic") == self.topic_partition.topic
        ]
        return max(deleted, default=0)

    def broker_events(self, *kinds: EventKind) -> list[Event]:
        """The events of these kinds that belong to no partition, oldest first."""
        return [e for e in self.events if e.topic_partition is None and e.kind in kinds]

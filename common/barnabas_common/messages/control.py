"""The requests between the controller and the brokers (service Control).

The fields are those of Kafka's ZooKeeper mode. `controller_epoch` and `broker_epoch` fence
requests: a broker refuses those of a controller older than the newest it knows, and those for an
earlier incarnation of itself (`broker_epoch` is the czxid of `/brokers/ids/<id>`).
"""

from dataclasses import dataclass, field

from barnabas_common.messages.sentinels import NO_EPOCH, NO_LEADER


@dataclass(slots=True)
class BrokerEndpoint:
    """One advertised listener of one registered broker; the broker epoch is -1 if unknown."""

    broker_id: int
    listener: str
    host: str
    port: int
    rack: str = ""
    broker_epoch: int = -1


# The beginning of the cause if the controller only repeats a role: it is not the role's own cause.
SENT_AGAIN = "sent again: "


@dataclass(slots=True)
class LeaderAndIsrPartition:
    """The role of a broker for one partition.

    `partition_epoch` is the version of the state znode. `is_new` allows the broker to create an
    empty log. `cause` is for humans: the reason for the decision or, after `SENT_AGAIN`, the reason
    for which an earlier decision is repeated. Only `explain` reads it. With `tell_only` the broker
    takes no role, and answers what it holds: the state may be older than that.
    `eligible_leader_replicas` have every committed record too (after KIP-966): a damaged log among
    them is not truncated.
    """

    topic: str
    partition: int
    topic_id: str
    controller_epoch: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: list[int] = field(default_factory=list)
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)
    is_new: bool = False
    leader_recovery_state: int = 0
    cause: str = ""
    tell_only: bool = False
    eligible_leader_replicas: list[int] = field(default_factory=list)

    @property
    def is_first(self) -> bool:
        """Whether the controller found no state of the partition, and has created the first one."""
        return self.is_new and self.leader_epoch == 0


@dataclass(slots=True)
class LeaderAndIsrRequest:
    """Makes a broker leader or follower of these partitions.

    `live_leaders` has the addresses of their leaders on the inter-broker listener. `number` rises
    with each request of a controller, UpdateMetadata and StopReplica included; 0: not numbered.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[LeaderAndIsrPartition] = field(default_factory=list)
    live_leaders: list[BrokerEndpoint] = field(default_factory=list)
    number: int = 0


@dataclass(slots=True)
class PartitionError:
    """The outcome for one partition, or only its name where `error_code` has no meaning."""

    topic: str
    partition: int
    error_code: int = 0


@dataclass(slots=True)
class HeldRole:
    """What a broker holds of a partition whose role it refused because of the leader epoch.

    `leader_epoch` is the newest that it knows, by its role or by its log. `leader` is the leader of
    that epoch according to its role. `in_sync_replicas` is the committed ISR if the broker leads
    itself, and the ISR of the role if no replica leads, which cannot have changed since.
    `log_epoch` and `log_end_offset` are those of its log.
    """

    topic: str
    partition: int
    leader_epoch: int
    leader: int = NO_LEADER
    in_sync_replicas: list[int] = field(default_factory=list)
    log_epoch: int = NO_EPOCH
    log_end_offset: int = 0


@dataclass(slots=True)
class LeaderAndIsrResponse:
    """The outcome for each partition; `held` has those whose role was refused for its epoch.

    With STALE_CONTROLLER_EPOCH, `controller_epoch` is the newest that the broker has accepted. The
    same holds for the responses to the controller's other requests.
    """

    error_code: int = 0
    partitions: list[PartitionError] = field(default_factory=list)
    controller_epoch: int = 0
    held: list[HeldRole] = field(default_factory=list)


@dataclass(slots=True)
class UpdateMetadataPartition:
    """The state of a partition. A `leader` of -1 means none, -2 that the topic is being deleted."""

    topic: str
    partition: int
    topic_id: str
    controller_epoch: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: list[int] = field(default_factory=list)
    replicas: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)
    eligible_leader_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SuspectedBroker:
    """One incarnation of a broker that is suspected to have ended."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class UpdateMetadataRequest:
    """The whole list of registered brokers, and the partitions that changed.

    `suspected_brokers` are the registered brokers that are suspected. A suspected broker that
    receives the request is running, and registers again. A later controller adopts the suspicions.
    `shutting_down_brokers` are about to stop. Suspected and stopping brokers may not join an ISR.
    If `names_all_topics`, a topic that is neither in `partitions` nor in `other_topics` does not
    exist. Of the other topics the state of no partition is known. `partitions_without_state` have
    had no leader yet, or their states cannot be read: a receiver that knows one keeps it.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[UpdateMetadataPartition] = field(default_factory=list)
    live_brokers: list[BrokerEndpoint] = field(default_factory=list)
    suspected_brokers: list[SuspectedBroker] = field(default_factory=list)
    shutting_down_brokers: list[int] = field(default_factory=list)
    names_all_topics: bool = False
    other_topics: list[str] = field(default_factory=list)
    number: int = 0
    partitions_without_state: list[UpdateMetadataPartition] = field(default_factory=list)


@dataclass(slots=True)
class UpdateMetadataResponse:
    error_code: int = 0
    controller_epoch: int = 0


@dataclass(slots=True)
class StopReplicaPartition:
    """A replica to stop. `cause` is for humans.

    A `leader_epoch` of -2 means that the topic is being deleted, whatever the epoch is; -1 means
    unknown. An empty `topic_id` means any topic of that name.
    """

    topic: str
    partition: int
    leader_epoch: int
    delete_partition: bool
    cause: str = ""
    topic_id: str = ""


@dataclass(slots=True)
class StopReplicaRequest:
    """Stops these replicas, and deletes the logs of those with `delete_partition`."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[StopReplicaPartition] = field(default_factory=list)
    number: int = 0


@dataclass(slots=True)
class StopReplicaResponse:
    error_code: int = 0
    partitions: list[PartitionError] = field(default_factory=list)
    controller_epoch: int = 0


@dataclass(slots=True)
class AlterPartitionItem:
    """A leader's request for a new ISR, based on the state that it knows (KIP-497).

    `new_isr_epochs` has, for each member of `new_isr`, the broker epoch of its latest fetch
    (KIP-903), or -1 if it has not fetched in this leader epoch. `cause` is for humans.
    """

    topic: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0
    cause: str = ""
    new_isr_epochs: list[int] = field(default_factory=list)
    topic_id: str = ""


@dataclass(slots=True)
class AlterPartitionRequest:
    """The ISR changes that a leader requests under its broker epoch."""

    broker_id: int
    broker_epoch: int
    partitions: list[AlterPartitionItem] = field(default_factory=list)


@dataclass(slots=True)
class AlteredPartition:
    """The state of a partition after the request, or the error; then the other fields are unset."""

    topic: str
    partition: int
    error_code: int = 0
    leader_id: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    in_sync_replicas: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0


@dataclass(slots=True)
class AlterPartitionResponse:
    """The outcome for each partition.

    `error_code` is NOT_CONTROLLER or STALE_BROKER_EPOCH if the whole request was refused.
    """

    error_code: int = 0
    partitions: list[AlteredPartition] = field(default_factory=list)


@dataclass(slots=True)
class ControlledShutdownRequest:
    """A broker that is about to stop asks the controller to move its leaderships first."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class ControlledShutdownResponse:
    """`remaining` are the partitions with other replicas that the broker still leads."""

    error_code: int = 0
    remaining: list[PartitionError] = field(default_factory=list)

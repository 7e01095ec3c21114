"""The requests between the controller and the brokers (service Control).

The fields are those of Kafka's ZooKeeper mode. `controller_epoch` and `broker_epoch` fence: a
broker refuses a controller older than the newest it knows, and a request for an earlier incarnation
of itself (`broker_epoch` is the czxid of `/brokers/ids/<id>`).
"""

from dataclasses import dataclass, field

from barnabas_common.messages.sentinels import NO_EPOCH, NO_LEADER


@dataclass(slots=True)
class BrokerEndpoint:
    """One advertised listener of one registered broker."""

    broker_id: int
    listener: str
    host: str
    port: int
    rack: str = ""


# The begin of the cause of a role that the controller repeats: it is not the cause of the role.
SENT_AGAIN = "sent again: "


@dataclass(slots=True)
class LeaderAndIsrPartition:
    """`partition_epoch` is the version of the state znode; `is_new` allows a new, empty log.

    `cause` says for humans why the controller sends it: why it decided so, or, after `SENT_AGAIN`,
    why it repeats a decision made before. Only `explain` reads it.
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


@dataclass(slots=True)
class LeaderAndIsrRequest:
    """Become leader or follower of these partitions; `live_leaders` are their leaders' addresses
    on the inter-broker listener."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[LeaderAndIsrPartition] = field(default_factory=list)
    live_leaders: list[BrokerEndpoint] = field(default_factory=list)


@dataclass(slots=True)
class PartitionError:
    topic: str
    partition: int
    error_code: int = 0


@dataclass(slots=True)
class HeldRole:
    """What a broker holds of a partition whose role it refused for its leader epoch.

    `leader_epoch` is the newest it knows, by its role or by its log; `leader` is the one that its
    role names in that epoch, and `in_sync_replicas` the committed ISR if it leads itself.
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
    """With STALE_CONTROLLER_EPOCH, `controller_epoch` is the newest that the broker has accepted;
    likewise in the responses to the other requests of a controller."""

    error_code: int = 0
    partitions: list[PartitionError] = field(default_factory=list)
    controller_epoch: int = 0
    held: list[HeldRole] = field(default_factory=list)


@dataclass(slots=True)
class UpdateMetadataPartition:
    """`leader` -1: none; -2: the topic is being deleted."""

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


@dataclass(slots=True)
class SuspectedBroker:
    """One incarnation of a broker that is suspected to have ended."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class UpdateMetadataRequest:
    """The whole list of registered brokers, and the partitions that changed.

    `suspected_brokers` are those of them that are suspected; one that receives this is running, and
    registers again; a later controller takes them over. `shutting_down_brokers` are about to stop.
    Neither may join an ISR.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[UpdateMetadataPartition] = field(default_factory=list)
    live_brokers: list[BrokerEndpoint] = field(default_factory=list)
    suspected_brokers: list[SuspectedBroker] = field(default_factory=list)
    shutting_down_brokers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class UpdateMetadataResponse:
    error_code: int = 0
    controller_epoch: int = 0


@dataclass(slots=True)
class StopReplicaPartition:
    """`leader_epoch` -2: the topic is being deleted, whatever the epoch; -1: unknown. `cause` is
    for humans. `topic_id`: of the replica that is meant; empty: whichever has the name."""

    topic: str
    partition: int
    leader_epoch: int
    delete_partition: bool
    cause: str = ""
    topic_id: str = ""


@dataclass(slots=True)
class StopReplicaRequest:
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[StopReplicaPartition] = field(default_factory=list)


@dataclass(slots=True)
class StopReplicaResponse:
    error_code: int = 0
    partitions: list[PartitionError] = field(default_factory=list)
    controller_epoch: int = 0


@dataclass(slots=True)
class AlterPartitionItem:
    """A leader's request for a new ISR, based on the state it knows (KIP-497). `cause`: for humans.

    `new_isr_epochs` are the broker epochs of the followers' latest fetches, one for each of
    `new_isr` (KIP-903); -1 for a follower that has not fetched in this leader epoch.
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
    broker_id: int
    broker_epoch: int
    partitions: list[AlterPartitionItem] = field(default_factory=list)


@dataclass(slots=True)
class AlteredPartition:
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
    """`error_code` NOT_CONTROLLER or STALE_BROKER_EPOCH is about the whole request."""

    error_code: int = 0
    partitions: list[AlteredPartition] = field(default_factory=list)


@dataclass(slots=True)
class ControlledShutdownRequest:
    """A broker that is about to stop asks the controller to move its leaderships first."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class ControlledShutdownResponse:
    """`remaining`: partitions the broker still leads, although they have other replicas."""

    error_code: int = 0
    remaining: list[PartitionError] = field(default_factory=list)

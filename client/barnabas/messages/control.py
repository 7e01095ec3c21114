"""What the controller and the brokers tell one another (service Control).

Field by field as in Kafka's ZooKeeper mode. `controller_epoch` and `broker_epoch` fence: a broker
ignores a controller older than the newest it has heard of, and a request meant for an earlier
life of itself (`broker_epoch` is the czxid of `/brokers/ids/<id>`).
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class BrokerEndpoint:
    """One advertised listener of one live broker."""

    broker_id: int
    listener: str
    host: str
    port: int
    rack: str = ""


@dataclass(slots=True)
class LeaderAndIsrPartition:
    """`partition_epoch` is the version of the state znode; `is_new` allows a new, empty log.

    `cause` says to a person why the controller appoints now; nothing is decided by it.
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
class LeaderAndIsrResponse:
    error_code: int = 0
    partitions: list[PartitionError] = field(default_factory=list)


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
    """One life of a broker, for whose end there is evidence."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class UpdateMetadataRequest:
    """The whole list of registered brokers, and the partitions that changed.

    `suspected_brokers` are those of them for whose death there is evidence; one that receives this
    lives, and registers anew; a later controller takes them over. `shutting_down_brokers` are about
    to stop. Neither may join an ISR.
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


@dataclass(slots=True)
class StopReplicaPartition:
    """`leader_epoch` -2: the topic is being deleted, whatever the epoch; -1: unknown. `cause` is
    for people."""

    topic: str
    partition: int
    leader_epoch: int
    delete_partition: bool
    cause: str = ""


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


@dataclass(slots=True)
class AlterPartitionItem:
    """A leader asks for a new ISR, on top of the state it knows (KIP-497). `cause`: for people.

    `new_isr_epochs` are the broker epochs of the lives whose fetches the leader goes by, one for
    each of `new_isr` (KIP-903); -1 for those it has not heard of in its epoch.
    """

    topic: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0
    cause: str = ""
    new_isr_epochs: list[int] = field(default_factory=list)


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
    """A broker that is about to stop asks that its leaderships be moved first."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class ControlledShutdownResponse:
    """`remaining`: partitions the broker still leads though they have other replicas."""

    error_code: int = 0
    remaining: list[PartitionError] = field(default_factory=list)

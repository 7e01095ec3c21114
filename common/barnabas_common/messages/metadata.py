"""Metadata: the brokers, the topics and the leaders of partitions (service Admin)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class MetadataRequest:
    """Requests the metadata of `topics` or, with `all_topics`, of all topics.

    Missing topics are created only if both the request and the broker allow it.
    """

    topics: list[str] = field(default_factory=list)
    all_topics: bool = False
    allow_auto_topic_creation: bool = False


@dataclass(slots=True)
class BrokerInfo:
    """A registered broker, with its address on the listener that received the request."""

    broker_id: int
    host: str
    port: int
    rack: str = ""


@dataclass(slots=True)
class PartitionMetadata:
    """The state of a partition. Without a leader, `leader_id` is -1 and `error_code` is
    LEADER_NOT_AVAILABLE."""

    partition: int
    error_code: int = 0
    leader_id: int = -1
    leader_epoch: int = -1
    replicas: list[int] = field(default_factory=list)
    in_sync_replicas: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True)
class TopicMetadata:
    topic: str
    error_code: int = 0
    topic_id: str = ""
    is_internal: bool = False
    partitions: list[PartitionMetadata] = field(default_factory=list)


@dataclass(slots=True)
class MetadataResponse:
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[BrokerInfo] = field(default_factory=list)
    topics: list[TopicMetadata] = field(default_factory=list)

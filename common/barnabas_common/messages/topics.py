"""CreateTopics, CreatePartitions and DeleteTopics (service Admin)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ConfigEntry:
    name: str
    value: str


@dataclass(slots=True)
class ReplicaAssignment:
    """The brokers of one partition; the first is its preferred leader."""

    partition: int
    broker_ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class NewTopic:
    """A topic to create; counts of -1 take the broker's `num.partitions` and
    `default.replication.factor`. With `assignments` both counts must be -1."""

    topic: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: list[ReplicaAssignment] = field(default_factory=list)
    configs: list[ConfigEntry] = field(default_factory=list)


@dataclass(slots=True)
class CreateTopicsRequest:
    """Answered when every partition has a leader, or after `timeout_ms`."""

    timeout_ms: int
    validate_only: bool = False
    topics: list[NewTopic] = field(default_factory=list)


@dataclass(slots=True)
class TopicResult:
    topic: str
    error_code: int = 0
    error_message: str = ""
    topic_id: str = ""
    partitions: int = -1
    replication_factor: int = -1


@dataclass(slots=True)
class CreateTopicsResponse:
    topics: list[TopicResult] = field(default_factory=list)


@dataclass(slots=True)
class NewPartitions:
    """The topic gets `count` partitions, including the present ones; `assignments` names the
    brokers of the new ones, or is empty."""

    topic: str
    count: int
    assignments: list[ReplicaAssignment] = field(default_factory=list)


@dataclass(slots=True)
class CreatePartitionsRequest:
    """Answered by the controller alone, when every new partition has a leader, or after
    `timeout_ms`."""

    timeout_ms: int
    validate_only: bool = False
    topics: list[NewPartitions] = field(default_factory=list)


@dataclass(slots=True)
class CreatePartitionsResponse:
    topics: list[TopicResult] = field(default_factory=list)


@dataclass(slots=True)
class DeleteTopicsRequest:
    """Answered when the topics are removed from the metadata, or after `timeout_ms`."""

    timeout_ms: int
    topics: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DeleteTopicsResponse:
    topics: list[TopicResult] = field(default_factory=list)

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
    """A topic to create.

    For counts of -1 the broker takes its `num.partitions` and `default.replication.factor`. With
    `assignments` both counts must be -1.
    """

    topic: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: list[ReplicaAssignment] = field(default_factory=list)
    configs: list[ConfigEntry] = field(default_factory=list)


@dataclass(slots=True)
class CreateTopicsRequest:
    """The response is sent when every partition has a leader, or after `timeout_ms`."""

    timeout_ms: int
    validate_only: bool = False
    topics: list[NewTopic] = field(default_factory=list)


@dataclass(slots=True)
class TopicResult:
    """The outcome for one topic; the counts are -1 and the id is empty where they do not apply.

    `waits_for`: the brokers with a replica that do not run, and must before a deletion can end.
    """

    topic: str
    error_code: int = 0
    error_message: str = ""
    topic_id: str = ""
    partitions: int = -1
    replication_factor: int = -1
    waits_for: list[int] = field(default_factory=list)


@dataclass(slots=True)
class CreateTopicsResponse:
    topics: list[TopicResult] = field(default_factory=list)


@dataclass(slots=True)
class NewPartitions:
    """A topic that is to have `count` partitions, including the present ones.

    `assignments` has the brokers of the new partitions; if it is empty the controller assigns them.
    """

    topic: str
    count: int
    assignments: list[ReplicaAssignment] = field(default_factory=list)


@dataclass(slots=True)
class CreatePartitionsRequest:
    """Only the controller handles it; other brokers return NOT_CONTROLLER.

    The response is sent when every new partition has a leader, or after `timeout_ms`.
    """

    timeout_ms: int
    validate_only: bool = False
    topics: list[NewPartitions] = field(default_factory=list)


@dataclass(slots=True)
class CreatePartitionsResponse:
    topics: list[TopicResult] = field(default_factory=list)


@dataclass(slots=True)
class DeleteTopicsRequest:
    """The response is sent when the topics can be created again, or after `timeout_ms`."""

    timeout_ms: int
    topics: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DeleteTopicsResponse:
    topics: list[TopicResult] = field(default_factory=list)

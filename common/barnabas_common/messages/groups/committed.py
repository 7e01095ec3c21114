"""OffsetCommit, OffsetFetch and OffsetDelete: how far a group has read."""

from dataclasses import dataclass, field

KAFKA_STORAGE = "kafka"
ZOOKEEPER_STORAGE = "zookeeper"
STORAGES = (KAFKA_STORAGE, ZOOKEEPER_STORAGE)


@dataclass(slots=True)
class OffsetCommitPartition:
    """`committed_offset` is that of the next record to read."""

    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str = ""


@dataclass(slots=True)
class OffsetCommitRequest:
    """`generation_id` is -1 for a consumer that assigns its partitions itself.

    `storage` is KAFKA_STORAGE (or empty), or ZOOKEEPER_STORAGE as the consumers of Kafka 0.8.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str = ""
    partitions: list[OffsetCommitPartition] = field(default_factory=list)
    storage: str = KAFKA_STORAGE
    client_id: str = ""


@dataclass(slots=True)
class OffsetCommitResult:
    topic: str
    partition: int
    error_code: int = 0


@dataclass(slots=True)
class OffsetCommitResponse:
    partitions: list[OffsetCommitResult] = field(default_factory=list)


@dataclass(slots=True)
class OffsetFetchPartition:
    topic: str
    partition: int


@dataclass(slots=True)
class OffsetFetchGroup:
    """With `all_topics` everything the group has committed, whatever `partitions` says."""

    group_id: str
    partitions: list[OffsetFetchPartition] = field(default_factory=list)
    all_topics: bool = False


@dataclass(slots=True)
class OffsetFetchRequest:
    """`require_stable` refuses an offset that is part of an open transaction (KIP-447)."""

    groups: list[OffsetFetchGroup] = field(default_factory=list)
    require_stable: bool = False
    storage: str = KAFKA_STORAGE
    client_id: str = ""


@dataclass(slots=True)
class CommittedOffset:
    """`committed_offset` is -1 if there is none."""

    topic: str
    partition: int
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str = ""
    error_code: int = 0


@dataclass(slots=True)
class OffsetFetchGroupResult:
    group_id: str
    error_code: int = 0
    partitions: list[CommittedOffset] = field(default_factory=list)


@dataclass(slots=True)
class OffsetFetchResponse:
    groups: list[OffsetFetchGroupResult] = field(default_factory=list)


@dataclass(slots=True)
class OffsetDeletePartition:
    topic: str
    partition: int


@dataclass(slots=True)
class OffsetDeleteRequest:
    group_id: str
    partitions: list[OffsetDeletePartition] = field(default_factory=list)
    client_id: str = ""


@dataclass(slots=True)
class OffsetDeleteResult:
    topic: str
    partition: int
    error_code: int = 0


@dataclass(slots=True)
class OffsetDeleteResponse:
    """`error_code` is that of the group as a whole."""

    error_code: int = 0
    partitions: list[OffsetDeleteResult] = field(default_factory=list)

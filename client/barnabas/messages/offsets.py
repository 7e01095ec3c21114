"""ListOffsets and OffsetForLeaderEpoch: where a log begins, ends, and changed its leader."""

from dataclasses import dataclass, field

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3


@dataclass(slots=True)
class ListOffsetsPartition:
    """`timestamp` in ms, or LATEST (-1), EARLIEST (-2), MAX_TIMESTAMP (-3)."""

    topic: str
    partition: int
    timestamp: int
    current_leader_epoch: int = -1


@dataclass(slots=True)
class ListOffsetsRequest:
    """`replica_id` -1 for consumers (latest is the high watermark), else latest is the log end."""

    replica_id: int = -1
    isolation_level: int = 0
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


@dataclass(slots=True)
class ListedOffset:
    """`offset` -1 when no record is as late as the timestamp asked for."""

    topic: str
    partition: int
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@dataclass(slots=True)
class ListOffsetsResponse:
    partitions: list[ListedOffset] = field(default_factory=list)


@dataclass(slots=True)
class EpochPartition:
    """Ask where `leader_epoch` ended in the leader's log."""

    topic: str
    partition: int
    leader_epoch: int
    current_leader_epoch: int = -1


@dataclass(slots=True)
class OffsetForLeaderEpochRequest:
    replica_id: int = -1
    partitions: list[EpochPartition] = field(default_factory=list)


@dataclass(slots=True)
class EpochEndOffset:
    """The largest epoch not above the one asked for, and its end offset; -1 and -1: undefined."""

    topic: str
    partition: int
    error_code: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True)
class OffsetForLeaderEpochResponse:
    partitions: list[EpochEndOffset] = field(default_factory=list)

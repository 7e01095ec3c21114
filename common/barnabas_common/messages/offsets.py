"""ListOffsets and OffsetForLeaderEpoch: where a log starts, ends, and changed its leader."""

from dataclasses import dataclass, field

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3


@dataclass(slots=True)
class ListOffsetsPartition:
    """`timestamp` in ms, or LATEST (-1), EARLIEST (-2), MAX_TIMESTAMP (-3).

    `topic_id` is that of a follower's log, empty from a client.
    """

    topic: str
    partition: int
    timestamp: int
    current_leader_epoch: int = -1
    topic_id: str = ""


@dataclass(slots=True)
class ListOffsetsRequest:
    """`replica_id` -1 for consumers (latest is the high watermark), else latest is the log end."""

    replica_id: int = -1
    isolation_level: int = 0
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


@dataclass(slots=True)
class ListedOffset:
    """`offset` -1 if no record is as late as the requested timestamp."""

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
    """A request for the end of `leader_epoch` in the leader's log.

    `topic_id` is that of a follower's log, empty from a client.
    """

    topic: str
    partition: int
    leader_epoch: int
    current_leader_epoch: int = -1
    topic_id: str = ""


@dataclass(slots=True)
class OffsetForLeaderEpochRequest:
    replica_id: int = -1
    partitions: list[EpochPartition] = field(default_factory=list)


@dataclass(slots=True)
class EpochEndOffset:
    """The largest epoch not above the requested one, and its end offset; -1 and -1: undefined."""

    topic: str
    partition: int
    error_code: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True)
class OffsetForLeaderEpochResponse:
    partitions: list[EpochEndOffset] = field(default_factory=list)

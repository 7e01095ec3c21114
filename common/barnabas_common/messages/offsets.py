"""ListOffsets and OffsetForLeaderEpoch: where a log and its leader epochs start and end."""

from dataclasses import dataclass, field

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3


@dataclass(slots=True)
class ListOffsetsPartition:
    """Requests the first offset whose record is at least as late as `timestamp`, in ms.

    LATEST_TIMESTAMP requests the end of the log, EARLIEST_TIMESTAMP its start, and MAX_TIMESTAMP
    the record with the largest timestamp. `topic_id` is that of a follower's log, empty from a
    client.
    """

    topic: str
    partition: int
    timestamp: int
    current_leader_epoch: int = -1
    topic_id: str = ""


@dataclass(slots=True)
class ListOffsetsRequest:
    """`replica_id` is -1 for clients, which get the high watermark as the end of the log.

    A follower sends its broker id, and gets the log end offset.
    """

    replica_id: int = -1
    isolation_level: int = 0
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


@dataclass(slots=True)
class ListedOffset:
    """The result for one partition; `offset` is -1 if no record is as late as requested."""

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
    """Requests the end of `leader_epoch` in the leader's log (KIP-101, KIP-320).

    `topic_id` is that of a follower's log, empty from a client.
    """

    topic: str
    partition: int
    leader_epoch: int
    current_leader_epoch: int = -1
    topic_id: str = ""


@dataclass(slots=True)
class OffsetForLeaderEpochRequest:
    """`replica_id` is a follower's broker id, -1 from a client."""

    replica_id: int = -1
    partitions: list[EpochPartition] = field(default_factory=list)


@dataclass(slots=True)
class EpochEndOffset:
    """The largest epoch not above the requested one, and its end offset; -1 and -1 if undefined."""

    topic: str
    partition: int
    error_code: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True)
class OffsetForLeaderEpochResponse:
    partitions: list[EpochEndOffset] = field(default_factory=list)

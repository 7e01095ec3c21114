"""Produce: append batches to partitions (service Data)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ProducePartition:
    """Batches for one partition: one or several record batches v2, back to back, atomically."""

    topic: str
    partition: int
    records: bytes


@dataclass(slots=True)
class ProduceRequest:
    """Append to many partitions.

    `acks`: 0 no answer, 1 when the leader has appended, -1 when the in-sync replicas have.
    `timeout_ms`: how long the broker may wait for them.
    """

    acks: int
    timeout_ms: int
    partitions: list[ProducePartition] = field(default_factory=list)


@dataclass(slots=True)
class ProducedPartition:
    """The outcome for one partition; `base_offset` is that of the first record, or -1.

    With NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH, the current leader is named if known.
    """

    topic: str
    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str = ""
    current_leader_id: int = -1
    current_leader_epoch: int = -1


@dataclass(slots=True)
class ProduceResponse:
    partitions: list[ProducedPartition] = field(default_factory=list)

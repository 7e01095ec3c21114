"""Produce: append batches to partitions (service Data)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ProducePartition:
    """Records for one partition: one or several batches v2, back to back, appended atomically."""

    topic: str
    partition: int
    records: bytes


@dataclass(slots=True)
class ProduceRequest:
    """Appends to many partitions.

    With `acks` 0 there is no response. With 1 it is sent when the leader has appended, with -1 when
    all in-sync replicas have, for which the broker waits up to `timeout_ms`. `transactional_id` is
    empty without transactional batches.
    """

    acks: int
    timeout_ms: int
    partitions: list[ProducePartition] = field(default_factory=list)
    transactional_id: str = ""


@dataclass(slots=True)
class ProducedPartition:
    """The outcome for one partition; `base_offset` is that of the first record, or -1.

    With NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH, the current leader is named if it is known
    (KIP-951).
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

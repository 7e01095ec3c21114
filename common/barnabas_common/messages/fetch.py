"""Fetch: read batches from a leader (service Data for consumers, Replica for followers)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class FetchPartition:
    """Where to read one partition.

    `current_leader_epoch` is the leader epoch in the reader's metadata (-1: not checked).
    `last_fetched_epoch` and `log_start_offset` are a follower's own, else -1 (KIP-595, KIP-107),
    and so is `topic_id`, which is empty in a consumer's fetch.
    `max_bytes` is soft: at least one whole batch is returned if there is any.
    """

    topic: str
    partition: int
    fetch_offset: int
    current_leader_epoch: int = -1
    max_bytes: int = 1048576
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    topic_id: str = ""


@dataclass(slots=True)
class FetchForgotten:
    """A partition that a follower removes from its fetch session."""

    topic: str
    partition: int


@dataclass(slots=True)
class FetchRequest:
    """Read many partitions; held until there are `min_bytes`, or for `max_wait_ms`.

    `replica_id` is -1 for consumers. A follower sends its broker id and broker epoch (the czxid of
    its registration), and names only the partitions whose fetch position changed since its last
    request of the same session (KIP-227): `session_id` 0 with `session_epoch` 0 opens a session
    and names all partitions; `session_epoch` -1 means no session (consumers).
    `isolation_level`: 0 read_uncommitted, 1 read_committed.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int = 0
    replica_id: int = -1
    replica_epoch: int = -1
    session_id: int = 0
    session_epoch: int = -1
    partitions: list[FetchPartition] = field(default_factory=list)
    forgotten: list[FetchForgotten] = field(default_factory=list)


@dataclass(slots=True)
class FetchedPartition:
    """The result for one partition: whole batches in `records`, and the leader's offsets.

    `diverging_epoch` and `diverging_end_offset` (else -1) show a follower that its log diverges
    from the leader's, and where (KIP-595).
    """

    topic: str
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: int = -1
    diverging_end_offset: int = -1
    current_leader_id: int = -1
    current_leader_epoch: int = -1
    records: bytes = b""


@dataclass(slots=True)
class FetchResponse:
    """`error_code` is about the whole request (its session, its broker epoch)."""

    error_code: int = 0
    session_id: int = 0
    partitions: list[FetchedPartition] = field(default_factory=list)

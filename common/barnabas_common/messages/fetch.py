"""Fetch: read batches from a leader (service Data for consumers, Replica for followers)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class FetchPartition:
    """Where to read one partition.

    `current_leader_epoch` is the leader epoch in the reader's metadata; -1 is not checked.
    `last_fetched_epoch` (KIP-595), `log_start_offset` (KIP-107) and `topic_id` are those of a
    follower's log; in a consumer's fetch they are -1, -1 and empty. `max_bytes` is not a strict
    limit: at least one whole batch is returned if there is any.
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
    """Reads many partitions. The broker waits until there are `min_bytes`, or for `max_wait_ms`.

    `replica_id` is -1 for consumers. A follower sends its broker id and broker epoch (the czxid of
    its registration). It names only the partitions whose fetch position changed since its last
    request of the same session (KIP-227). `session_id` 0 with `session_epoch` 0 opens a session and
    names all partitions; `session_epoch` -1 means no session, as for consumers. `isolation_level`
    is 0 for read_uncommitted and 1 for read_committed.
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
class AbortedTransaction:
    """From `first_offset` up to its marker, the producer's batches are not for read_committed
    readers."""

    producer_id: int
    first_offset: int


@dataclass(slots=True)
class FetchedPartition:
    """The result for one partition: batches in `records`, and the leader's offsets.

    If a follower's log diverges from the leader's, `diverging_epoch` and `diverging_end_offset` say
    where (KIP-595); otherwise they are -1. `aborted_transactions`, for read_committed only, are all
    that may have batches in `records`.
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
    aborted_transactions: list[AbortedTransaction] = field(default_factory=list)


@dataclass(slots=True)
class FetchResponse:
    """`error_code` is about the whole request (its session, its broker epoch)."""

    error_code: int = 0
    session_id: int = 0
    partitions: list[FetchedPartition] = field(default_factory=list)

"""DescribeReplicas: the state of the replicas on the broker that answers (service Admin).

Each broker describes only its own replicas, so that LEO and HW of each replica can be seen, and not
just what the leader knows of them.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class DescribeReplicasRequest:
    """Requests all partitions of `topics`, or of every topic if that is empty."""

    topics: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RemoteReplica:
    """A follower as its leader sees it; `caught_up_ms_ago` is -1 if it never was caught up."""

    broker_id: int
    log_end_offset: int = -1
    caught_up_ms_ago: int = -1


@dataclass(slots=True)
class ReplicaDescription:
    """One replica on the broker; it is `offline` if its log directory has failed.

    Only the leader sets `in_sync_replicas` and the four fields after it. `held_back_because` says
    why the high watermark is below the log end; it is empty if it is not. `held_back_by` are the
    followers for which the high watermark waits. `dirty_percent` is the part of the log's bytes
    that may be compacted and was not yet, -1 if the topic is not compacted.
    """

    topic: str
    partition: int
    is_leader: bool = False
    leader_id: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    log_start_offset: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_end_offset: int = -1
    size_bytes: int = 0
    in_sync_replicas: list[int] = field(default_factory=list)
    followers: list[RemoteReplica] = field(default_factory=list)
    min_in_sync_replicas: int = -1
    held_back_by: list[int] = field(default_factory=list)
    held_back_because: str = ""
    offline: bool = False
    dirty_percent: int = -1


@dataclass(slots=True)
class DescribeReplicasResponse:
    broker_id: int
    replicas: list[ReplicaDescription] = field(default_factory=list)

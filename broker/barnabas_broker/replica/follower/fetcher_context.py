"""The settings and parts that all fetchers of a broker share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas_common.events import EventLog
from barnabas_common.runtime import Network, Pauses

from barnabas_broker.replica.follower.fetch_session_handler import FetchLimits
from barnabas_broker.replica.follower.truncation import TruncationPolicy
from barnabas_broker.replica.partition.partition import DamagedReplicaError, Partition
from barnabas_broker.replica.replication_quota import ReplicationQuota


@dataclass(frozen=True)
class FetcherContext:
    """`backoff` (the longest pause after errors) and `timeout` (of a request) are in seconds.

    `on_damage` is called with a partition that is no longer followed because its own log is
    damaged.
    """

    network: Network
    now: Callable[[], float]
    broker_id: int
    broker_epoch: Callable[[], int]
    limits: FetchLimits
    backoff: float
    timeout: float
    truncation: TruncationPolicy = field(default_factory=TruncationPolicy)
    quota: ReplicationQuota | None = None
    pauses: Pauses | None = None
    events: EventLog = field(default_factory=EventLog)
    on_damage: Callable[[Partition, DamagedReplicaError], None] = lambda *_: None

"""The settings and parts that the leaders of all partitions of a broker share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas_common.events import EventLog
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.leader.alter_partition_manager import AlterPartitionManager
from barnabas_broker.replica.leader.in_sync import NEVER

FlushSoon = Callable[[UnifiedLog, Callable[[], None]], None]
"""Flush a log in the background, then call back on the event loop."""


@dataclass(frozen=True)
class LeaderEnvironment:
    """`max_lag` is in seconds.

    `flush_soon` is None if a last replica need not flush (`last.replica.fsync.enable`). `gate`
    holds the high watermark while the ISR is below its minimum
    (`high.watermark.min.isr.gate.enable`). `last_fetch_without` returns when a follower last
    fetched in a session that does not name a partition.
    """

    broker_id: int
    now: Callable[[], float]
    max_lag: float
    is_alive: Callable[[int], bool]
    alter_partition_manager: AlterPartitionManager
    flush_soon: FlushSoon | None = None
    gate: bool = True
    max_lag_messages: int | None = None
    events: EventLog = field(default_factory=EventLog)
    last_fetch_without: Callable[[int, TopicPartition], float] = lambda _broker_id, _key: NEVER

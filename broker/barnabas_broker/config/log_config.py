"""The settings of one log: a topic's own overrides over the broker's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from barnabas_broker.config import keys
from barnabas_broker.config.key import MAX_LONG, InvalidConfig, Key, dynamic
from barnabas_broker.config.throttled_replicas import (
    NO_REPLICAS,
    ThrottledReplicas,
    throttled_replicas,
)


@dataclass(frozen=True)
class LogConfig:
    """A snapshot, replaced when a setting changes. Sizes in bytes, times in ms; -1: no limit."""

    segment_bytes: int = 1073741824
    segment_ms: int = 604800000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10485760
    index_interval_bytes: int = 4096
    retention_ms: int = 604800000
    retention_bytes: int = -1
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    file_delete_delay_ms: int = 60000
    max_message_bytes: int = 1048588
    min_insync_replicas: int = 1
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_after_max_ms: int = MAX_LONG
    compression_type: str = "producer"
    cleanup_policy: str = "delete"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_LONG
    delete_retention_ms: int = 86400000
    record_validation: str = "readable"
    unclean_leader_election_enable: bool = False
    leader_replication_throttled_replicas: ThrottledReplicas = NO_REPLICAS
    follower_replication_throttled_replicas: ThrottledReplicas = NO_REPLICAS


BROKER_KEYS_BEHIND: dict[str, tuple[Key, ...]] = {  # type: ignore[type-arg]
    "segment.bytes": (keys.LOG_SEGMENT_BYTES,),
    "segment.ms": (keys.LOG_ROLL_MS, keys.LOG_ROLL_HOURS),
    "segment.jitter.ms": (keys.LOG_ROLL_JITTER_MS, keys.LOG_ROLL_JITTER_HOURS),
    "segment.index.bytes": (keys.LOG_INDEX_SIZE_MAX_BYTES,),
    "index.interval.bytes": (keys.LOG_INDEX_INTERVAL_BYTES,),
    "retention.ms": (keys.LOG_RETENTION_MS, keys.LOG_RETENTION_MINUTES, keys.LOG_RETENTION_HOURS),
    "retention.bytes": (keys.LOG_RETENTION_BYTES,),
    "flush.messages": (keys.LOG_FLUSH_INTERVAL_MESSAGES,),
    "flush.ms": (keys.LOG_FLUSH_INTERVAL_MS, keys.LOG_FLUSH_SCHEDULER_INTERVAL_MS),
    "file.delete.delay.ms": (keys.LOG_SEGMENT_DELETE_DELAY_MS,),
    "max.message.bytes": (keys.MESSAGE_MAX_BYTES,),
    "min.insync.replicas": (keys.MIN_INSYNC_REPLICAS,),
    "message.timestamp.type": (keys.LOG_MESSAGE_TIMESTAMP_TYPE,),
    "message.timestamp.before.max.ms": (keys.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,),
    "message.timestamp.after.max.ms": (keys.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,),
    "compression.type": (keys.COMPRESSION_TYPE,),
    "cleanup.policy": (keys.LOG_CLEANUP_POLICY,),
    "min.cleanable.dirty.ratio": (keys.LOG_CLEANER_MIN_CLEANABLE_RATIO,),
    "min.compaction.lag.ms": (keys.LOG_CLEANER_MIN_COMPACTION_LAG_MS,),
    "max.compaction.lag.ms": (keys.LOG_CLEANER_MAX_COMPACTION_LAG_MS,),
    "delete.retention.ms": (keys.LOG_CLEANER_DELETE_RETENTION_MS,),
    "record.validation": (keys.LOG_RECORD_VALIDATION,),
    "unclean.leader.election.enable": (keys.UNCLEAN_LEADER_ELECTION_ENABLE,),
}
"""The broker's keys that give a topic's setting its default; the first one with a value counts."""


def _topic_key(name: str) -> Key:  # type: ignore[type-arg]
    """A topic's key is read like the broker's key behind it."""
    default = getattr(LogConfig, name.replace(".", "_"))
    return replace(BROKER_KEYS_BEHIND[name][0], name=name, default=default, dynamic=True)


TOPIC_KEYS: dict[str, Key] = {  # type: ignore[type-arg]
    **{name: _topic_key(name) for name in BROKER_KEYS_BEHIND},
    **{
        f"{role}.replication.throttled.replicas": dynamic(
            f"{role}.replication.throttled.replicas",
            throttled_replicas,
            NO_REPLICAS,
            f"Replicas throttled as {role}s, partition:broker or *.",
            is_list=True,
        )
        for role in ("leader", "follower")
    },
}


def parse_topic_overrides(overrides: Mapping[str, str]) -> dict[str, object]:
    """Field names of `LogConfig` and values; InvalidConfig for an unknown key or a bad value."""
    values: dict[str, object] = {}
    for name, text in overrides.items():
        key = TOPIC_KEYS.get(name)
        if key is None:
            raise InvalidConfig(f"unknown topic config {name!r}")
        values[name.replace(".", "_")] = key.read(text)
    lags = values.get("min_compaction_lag_ms"), values.get("max_compaction_lag_ms")
    if isinstance(lags[0], int) and isinstance(lags[1], int) and lags[0] > lags[1]:
        raise InvalidConfig("min.compaction.lag.ms is above max.compaction.lag.ms")
    return values

"""The settings of one log: a topic's own overrides over the broker's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas_broker.config.key import (
    MAX_INT,
    MAX_LONG,
    InvalidConfig,
    Key,
    boolean,
    integer,
    one_of,
)
from barnabas_broker.config.throttled_replicas import (
    NO_REPLICAS,
    ThrottledReplicas,
    throttled_replicas,
)


@dataclass(frozen=True)
class LogConfig:
    """A snapshot; replaced whole when a setting changes. Sizes in bytes, times in ms, -1 none."""

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
    unclean_leader_election_enable: bool = False
    leader_replication_throttled_replicas: ThrottledReplicas = NO_REPLICAS
    follower_replication_throttled_replicas: ThrottledReplicas = NO_REPLICAS


def _key(name: str, parse, doc: str, is_list: bool = False) -> Key:  # type: ignore[no-untyped-def, type-arg]
    default = getattr(LogConfig, name.replace(".", "_"))
    return Key(name, parse, default, doc, dynamic=True, is_list=is_list)


TOPIC_KEYS: dict[str, Key] = {  # type: ignore[type-arg]
    key.name: key
    for key in (
        _key("segment.bytes", integer(14, MAX_INT), "Segment size."),
        _key("segment.ms", integer(1), "Segment age, ms."),
        _key("segment.jitter.ms", integer(0), "Random reduction of the segment age, ms."),
        _key("segment.index.bytes", integer(4, MAX_INT), "Largest index of a segment."),
        _key("index.interval.bytes", integer(0, MAX_INT), "Bytes of log between index entries."),
        _key("retention.ms", integer(-1), "Age limit, ms; -1 none."),
        _key("retention.bytes", integer(-1), "Size limit of a partition; -1 none."),
        _key("flush.messages", integer(1), "Records between fsyncs."),
        _key("flush.ms", integer(0), "Longest time a record stays unflushed, ms."),
        _key("file.delete.delay.ms", integer(0), "How long deleted files stay on disk, ms."),
        _key("max.message.bytes", integer(0, MAX_INT), "Largest batch."),
        _key("min.insync.replicas", integer(1, MAX_INT), "In-sync replicas that acks=all needs."),
        _key(
            "message.timestamp.type",
            one_of("CreateTime", "LogAppendTime"),
            "Whose clock stamps the records.",
        ),
        _key("message.timestamp.before.max.ms", integer(0), "Oldest timestamp allowed, ms."),
        _key("message.timestamp.after.max.ms", integer(0), "Furthest future allowed, ms."),
        _key(
            "compression.type",
            one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
            "Codec of stored batches; producer: as received.",
        ),
        _key("cleanup.policy", one_of("delete"), "What becomes of old segments.", is_list=True),
        _key("unclean.leader.election.enable", boolean, "Elect outside the ISR if it is dead."),
        _key(
            "leader.replication.throttled.replicas",
            throttled_replicas,
            "Replicas throttled as leaders, partition:broker or *.",
            is_list=True,
        ),
        _key(
            "follower.replication.throttled.replicas",
            throttled_replicas,
            "Replicas throttled as followers, partition:broker or *.",
            is_list=True,
        ),
    )
}


def parse_topic_overrides(overrides: Mapping[str, str]) -> dict[str, object]:
    """Field names of `LogConfig` and values; InvalidConfig for an unknown key or a bad value."""
    values: dict[str, object] = {}
    for name, text in overrides.items():
        key = TOPIC_KEYS.get(name)
        if key is None:
            raise InvalidConfig(f"unknown topic config {name!r}")
        values[name.replace(".", "_")] = key.read(text)
    return values

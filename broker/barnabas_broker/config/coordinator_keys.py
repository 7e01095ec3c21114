"""The broker keys of consumer groups and of the topic that holds their offsets."""

from barnabas_broker.config.key import MAX_INT, Key, integer

GROUP_MIN_SESSION_TIMEOUT_MS = Key(
    "group.min.session.timeout.ms",
    integer(1, MAX_INT),
    6000,
    "Shortest session timeout a member may ask for, ms.",
)
GROUP_MAX_SESSION_TIMEOUT_MS = Key(
    "group.max.session.timeout.ms",
    integer(1, MAX_INT),
    1800000,
    "Longest session timeout a member may ask for, ms.",
)
GROUP_INITIAL_REBALANCE_DELAY_MS = Key(
    "group.initial.rebalance.delay.ms",
    integer(0, MAX_INT),
    3000,
    "How long an empty group waits for more members after the first, ms.",
)
GROUP_MAX_SIZE = Key("group.max.size", integer(1, MAX_INT), MAX_INT, "Members of one group.")
OFFSET_METADATA_MAX_BYTES = Key(
    "offset.metadata.max.bytes",
    integer(0, MAX_INT),
    4096,
    "Longest metadata of a committed offset, characters.",
)
OFFSETS_LOAD_BUFFER_SIZE = Key(
    "offsets.load.buffer.size",
    integer(1, MAX_INT),
    5242880,
    "Bytes read at once from `__consumer_offsets` when a coordinator loads it.",
)
OFFSETS_TOPIC_REPLICATION_FACTOR = Key(
    "offsets.topic.replication.factor",
    integer(1, 32767),
    3,
    "Replicas of `__consumer_offsets`; it is not created with fewer brokers.",
)
OFFSETS_TOPIC_NUM_PARTITIONS = Key(
    "offsets.topic.num.partitions",
    integer(1, MAX_INT),
    50,
    "Partitions of `__consumer_offsets`; without effect once the topic exists.",
)
OFFSETS_TOPIC_SEGMENT_BYTES = Key(
    "offsets.topic.segment.bytes",
    integer(1, MAX_INT),
    104857600,
    "Segment size of `__consumer_offsets`; without effect once the topic exists.",
)
OFFSETS_TOPIC_COMPRESSION_CODEC = Key(
    "offsets.topic.compression.codec",
    integer(0, 4),
    0,
    "Codec of the coordinator's batches: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
)
OFFSETS_RETENTION_MINUTES = Key(
    "offsets.retention.minutes",
    integer(1, MAX_INT),
    10080,
    "How long offsets of an empty group, or of topics that no member reads, are kept, minutes.",
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = Key(
    "offsets.retention.check.interval.ms",
    integer(1),
    600000,
    "Time between scans for expired offsets, ms.",
)
OFFSETS_COMMIT_TIMEOUT_MS = Key(
    "offsets.commit.timeout.ms",
    integer(1, MAX_INT),
    5000,
    "How long a commit may wait for the replicas, ms.",
)

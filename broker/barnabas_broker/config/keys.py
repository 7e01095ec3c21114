"""Every broker key that is built here, with Kafka's name, type and default.

A key that Kafka knows and this table does not is refused at start, never ignored: a setting that
silently does nothing is worse than none. The one departure from Kafka's defaults is
`auto.create.topics.enable`, false here: a typing mistake should not become a topic.

A key is dynamic where Kafka's is; so are those of the preferred-leader rebalance, which Kafka reads
at start only.
"""

from barnabas_broker.config.key import (
    MAX_INT,
    MAX_LONG,
    Key,
    boolean,
    integer,
    one_of,
    optional_integer,
    optional_text,
    text,
)

# Identity, listeners, ZooKeeper
BROKER_ID = Key("broker.id", integer(0, MAX_INT), -1, "The broker's id; required.")
BROKER_RACK = Key("broker.rack", optional_text, None, "Rack, for replica assignment.")
LISTENERS = Key(
    "listeners", text, "PLAINTEXT://:9092", "Addresses to bind: NAME://host:port, comma separated."
)
ADVERTISED_LISTENERS = Key(
    "advertised.listeners", optional_text, None, "Addresses told to others; default: listeners."
)
INTER_BROKER_LISTENER_NAME = Key(
    "inter.broker.listener.name",
    optional_text,
    None,
    "The listener for replication and control; required, and no client's.",
)
ZOOKEEPER_CONNECT = Key(
    "zookeeper.connect", optional_text, None, "host:port,...[/chroot] of the ensemble; required."
)
ZOOKEEPER_SESSION_TIMEOUT_MS = Key(
    "zookeeper.session.timeout.ms", integer(100, MAX_INT), 18000, "Session timeout, ms."
)
ZOOKEEPER_CONNECTION_TIMEOUT_MS = Key(
    "zookeeper.connection.timeout.ms",
    optional_integer(1, MAX_INT),
    None,
    "How long to wait for a connection at start, ms; default: the session timeout.",
)
SOCKET_REQUEST_MAX_BYTES = Key(
    "socket.request.max.bytes", integer(1024, MAX_INT), 104857600, "Largest request accepted."
)

# Topics
NUM_PARTITIONS = Key("num.partitions", integer(1, MAX_INT), 1, "Partitions of a topic by default.")
DEFAULT_REPLICATION_FACTOR = Key(
    "default.replication.factor", integer(1, 32767), 1, "Replicas of a topic by default."
)
AUTO_CREATE_TOPICS_ENABLE = Key(
    "auto.create.topics.enable", boolean, False, "Create a topic when metadata asks for it."
)
DELETE_TOPIC_ENABLE = Key("delete.topic.enable", boolean, True, "Allow topics to be deleted.")

# The log
LOG_DIR = Key("log.dir", text, "/tmp/barnabas-logs", "Data directory, when log.dirs is unset.")
LOG_DIRS = Key("log.dirs", optional_text, None, "Data directories, comma separated.")
LOG_SEGMENT_BYTES = Key(
    "log.segment.bytes", integer(14, MAX_INT), 1073741824, "Segment size.", dynamic=True
)
LOG_ROLL_MS = Key("log.roll.ms", optional_integer(1), None, "Segment age, ms.", dynamic=True)
LOG_ROLL_HOURS = Key("log.roll.hours", integer(1, MAX_INT), 168, "Segment age, hours.")
LOG_ROLL_JITTER_MS = Key(
    "log.roll.jitter.ms",
    optional_integer(0),
    None,
    "Random reduction of the segment age, ms.",
    dynamic=True,
)
LOG_ROLL_JITTER_HOURS = Key(
    "log.roll.jitter.hours", integer(0, MAX_INT), 0, "Random reduction of the segment age, hours."
)
LOG_RETENTION_MS = Key(
    "log.retention.ms", optional_integer(-1), None, "Age limit, ms; -1 none.", dynamic=True
)
LOG_RETENTION_MINUTES = Key(
    "log.retention.minutes", optional_integer(-1, MAX_INT), None, "Age limit, minutes; -1 none."
)
LOG_RETENTION_HOURS = Key(
    "log.retention.hours", integer(-1, MAX_INT), 168, "Age limit, hours; -1 none."
)
LOG_RETENTION_BYTES = Key(
    "log.retention.bytes", integer(-1), -1, "Size limit of a partition; -1 none.", dynamic=True
)
LOG_RETENTION_CHECK_INTERVAL_MS = Key(
    "log.retention.check.interval.ms", integer(1), 300000, "Time between retention scans, ms."
)
LOG_CLEANUP_POLICY = Key(
    "log.cleanup.policy",
    one_of("delete"),
    "delete",
    "What becomes of old segments.",
    dynamic=True,
    is_list=True,
)
LOG_INDEX_SIZE_MAX_BYTES = Key(
    "log.index.size.max.bytes",
    integer(4, MAX_INT),
    10485760,
    "Largest index of a segment.",
    dynamic=True,
)
LOG_INDEX_INTERVAL_BYTES = Key(
    "log.index.interval.bytes",
    integer(0, MAX_INT),
    4096,
    "Bytes of log between index entries.",
    dynamic=True,
)
LOG_FLUSH_INTERVAL_MESSAGES = Key(
    "log.flush.interval.messages", integer(1), MAX_LONG, "Records between fsyncs.", dynamic=True
)
LOG_FLUSH_INTERVAL_MS = Key(
    "log.flush.interval.ms",
    optional_integer(0),
    None,
    "Longest time a record stays unflushed, ms.",
    dynamic=True,
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = Key(
    "log.flush.scheduler.interval.ms", integer(1), MAX_LONG, "Time between flush scans, ms."
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = Key(
    "log.flush.offset.checkpoint.interval.ms",
    integer(1, MAX_INT),
    60000,
    "Time between writes of the recovery points, ms.",
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = Key(
    "log.flush.start.offset.checkpoint.interval.ms",
    integer(1, MAX_INT),
    60000,
    "Time between writes of the log start offsets, ms.",
)
LOG_SEGMENT_DELETE_DELAY_MS = Key(
    "log.segment.delete.delay.ms",
    integer(0),
    60000,
    "How long deleted files stay on disk, ms.",
    dynamic=True,
)
LOG_INITIAL_TASK_DELAY_MS = Key(
    "log.initial.task.delay.ms", integer(0), 30000, "Delay of the first background scans, ms."
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = Key(
    "num.recovery.threads.per.data.dir",
    integer(1, 64),
    1,
    "Logs loaded at once per directory.",
    dynamic=True,
)
LOG_MESSAGE_TIMESTAMP_TYPE = Key(
    "log.message.timestamp.type",
    one_of("CreateTime", "LogAppendTime"),
    "CreateTime",
    "Whose clock stamps the records.",
    dynamic=True,
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = Key(
    "log.message.timestamp.before.max.ms",
    integer(0),
    MAX_LONG,
    "Oldest timestamp allowed, ms.",
    dynamic=True,
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = Key(
    "log.message.timestamp.after.max.ms",
    integer(0),
    MAX_LONG,
    "Furthest future allowed, ms.",
    dynamic=True,
)
COMPRESSION_TYPE = Key(
    "compression.type",
    one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "producer",
    "Codec of stored batches; producer: as received.",
    dynamic=True,
)
MESSAGE_MAX_BYTES = Key(
    "message.max.bytes", integer(0, MAX_INT), 1048588, "Largest batch.", dynamic=True
)

# Replication and control
MIN_INSYNC_REPLICAS = Key(
    "min.insync.replicas",
    integer(1, MAX_INT),
    1,
    "In-sync replicas that acks=all needs.",
    dynamic=True,
)
UNCLEAN_LEADER_ELECTION_ENABLE = Key(
    "unclean.leader.election.enable",
    boolean,
    False,
    "Elect outside the ISR when it is all dead.",
    dynamic=True,
)
LAST_REPLICA_FSYNC_ENABLE = Key(
    "last.replica.fsync.enable",
    boolean,
    True,
    "A leader whose ISR is thin counts only what is flushed; false: as Kafka does.",
)
HIGH_WATERMARK_MIN_ISR_GATE_ENABLE = Key(
    "high.watermark.min.isr.gate.enable",
    boolean,
    True,
    "No high watermark moves under the minimum ISR (KIP-966); false: Kafka before 3.7.",
)
ELIGIBLE_LEADER_REPLICAS_ENABLE = Key(
    "eligible.leader.replicas.enable",
    boolean,
    True,
    "Prefer replicas that lost nothing to an ISR member that did (after KIP-966); false: as Kafka.",
)
ELIGIBLE_LEADER_REPLICAS_WAIT_MS = Key(
    "eligible.leader.replicas.wait.ms",
    integer(0),
    30000,
    "How long an ISR member that lost its unflushed records waits for a better one, ms.",
)
REPLICA_LAG_TIME_MAX_MS = Key(
    "replica.lag.time.max.ms", integer(1), 30000, "A follower behind for longer leaves the ISR, ms."
)
REPLICA_FETCH_MAX_BYTES = Key(
    "replica.fetch.max.bytes", integer(0, MAX_INT), 1048576, "Bytes per partition, soft."
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = Key(
    "replica.fetch.response.max.bytes", integer(0, MAX_INT), 10485760, "Bytes per response, soft."
)
REPLICA_FETCH_MIN_BYTES = Key(
    "replica.fetch.min.bytes", integer(0, MAX_INT), 1, "Bytes a follower waits for."
)
REPLICA_FETCH_WAIT_MAX_MS = Key(
    "replica.fetch.wait.max.ms", integer(0, MAX_INT), 500, "How long a fetch is parked, ms."
)
REPLICA_FETCH_BACKOFF_MS = Key(
    "replica.fetch.backoff.ms", integer(0, MAX_INT), 1000, "Pause after a partition's error, ms."
)
REPLICA_SOCKET_TIMEOUT_MS = Key(
    "replica.socket.timeout.ms", integer(1, MAX_INT), 30000, "A follower's fetch fails after, ms."
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = Key(
    "replica.high.watermark.checkpoint.interval.ms",
    integer(1),
    5000,
    "Time between writes of the high watermarks, ms.",
)
LEADER_REPLICATION_THROTTLED_RATE = Key(
    "leader.replication.throttled.rate",
    integer(0),
    MAX_LONG,
    "Throttled replicas are sent at most so many bytes a second.",
    dynamic=True,
)
FOLLOWER_REPLICATION_THROTTLED_RATE = Key(
    "follower.replication.throttled.rate",
    integer(0),
    MAX_LONG,
    "Throttled replicas fetch at most so many bytes a second.",
    dynamic=True,
)
AUTO_LEADER_REBALANCE_ENABLE = Key(
    "auto.leader.rebalance.enable",
    boolean,
    True,
    "Give leadership back to preferred replicas.",
    dynamic=True,
)
LEADER_IMBALANCE_PER_BROKER_PERCENTAGE = Key(
    "leader.imbalance.per.broker.percentage",
    integer(0, 100),
    10,
    "Imbalance that triggers it.",
    dynamic=True,
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = Key(
    "leader.imbalance.check.interval.seconds",
    integer(1),
    300,
    "Time between checks, s.",
    dynamic=True,
)
CONTROLLER_SOCKET_TIMEOUT_MS = Key(
    "controller.socket.timeout.ms", integer(1, MAX_INT), 30000, "Control requests fail after, ms."
)
FAILURE_DETECTION = Key(
    "failure.detection",
    one_of("evidence", "session"),
    "evidence",
    "Not Kafka's. evidence: a control stream that ended and a refused reconnection move leaders at"
    " once; session: only the end of the ZooKeeper session does, as in Kafka.",
)
CONTROLLED_SHUTDOWN_ENABLE = Key(
    "controlled.shutdown.enable", boolean, True, "Move leadership away before stopping."
)
CONTROLLED_SHUTDOWN_MAX_RETRIES = Key(
    "controlled.shutdown.max.retries", integer(0, MAX_INT), 3, "Attempts."
)
CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS = Key(
    "controlled.shutdown.retry.backoff.ms", integer(0), 5000, "Pause between attempts, ms."
)
FETCH_MAX_BYTES = Key("fetch.max.bytes", integer(1024, MAX_INT), 57671680, "Cap of any fetch.")
REPLICA_LAG_MAX_MESSAGES = Key(
    "replica.lag.max.messages",
    optional_integer(1),
    None,
    "A follower behind by more records leaves the ISR; unset: none does, as in Kafka since 0.9.",
)

# For labs and tests, not Kafka's
REPLICA_TRUNCATION = Key(
    "replica.truncation",
    one_of("leader-epoch", "high-watermark"),
    "leader-epoch",
    "Where a new follower cuts its log; high-watermark is Kafka's way before 0.11, and loses data.",
)
REPLICA_TRUNCATION_LOOKUP = Key(
    "replica.truncation.lookup",
    one_of("fetch", "offsets-for-leader-epoch"),
    "fetch",
    "How a new follower asks where epochs end: by fetching (Kafka since 2.7), or before it.",
)
LOG_DISK = Key(
    "log.disk",
    one_of("posix", "volatile"),
    "posix",
    "volatile: what is not flushed dies with the process, so that kill -9 is a power loss.",
)
PAUSE_DIRECTORY = Key(
    "pause.directory",
    optional_text,
    None,
    "Where files named after pause points hold this broker there; unset: nothing can hold it.",
)

BROKER_KEYS: dict[str, Key] = {  # type: ignore[type-arg]
    value.name: value for value in list(globals().values()) if isinstance(value, Key)
}

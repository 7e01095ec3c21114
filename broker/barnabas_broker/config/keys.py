"""Every supported broker key, with Kafka's name, type and default.

A key of Kafka's that is not in this table is refused at start, never ignored: a setting without an
effect is worse than none. One default differs from Kafka's: `auto.create.topics.enable` is false,
so that a typing mistake does not create a topic.

A key is dynamic if Kafka's is; so are the keys of the preferred-leader rebalance, which Kafka reads
only at start.
"""

from barnabas_broker.config.coordinator_keys import (
    GROUP_INITIAL_REBALANCE_DELAY_MS as GROUP_INITIAL_REBALANCE_DELAY_MS,
)
from barnabas_broker.config.coordinator_keys import (
    GROUP_MAX_SESSION_TIMEOUT_MS as GROUP_MAX_SESSION_TIMEOUT_MS,
)
from barnabas_broker.config.coordinator_keys import (
    GROUP_MAX_SIZE as GROUP_MAX_SIZE,
)
from barnabas_broker.config.coordinator_keys import (
    GROUP_MIN_SESSION_TIMEOUT_MS as GROUP_MIN_SESSION_TIMEOUT_MS,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSET_METADATA_MAX_BYTES as OFFSET_METADATA_MAX_BYTES,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_COMMIT_TIMEOUT_MS as OFFSETS_COMMIT_TIMEOUT_MS,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_LOAD_BUFFER_SIZE as OFFSETS_LOAD_BUFFER_SIZE,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_RETENTION_CHECK_INTERVAL_MS as OFFSETS_RETENTION_CHECK_INTERVAL_MS,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_RETENTION_MINUTES as OFFSETS_RETENTION_MINUTES,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_TOPIC_COMPRESSION_CODEC as OFFSETS_TOPIC_COMPRESSION_CODEC,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_TOPIC_NUM_PARTITIONS as OFFSETS_TOPIC_NUM_PARTITIONS,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_TOPIC_REPLICATION_FACTOR as OFFSETS_TOPIC_REPLICATION_FACTOR,
)
from barnabas_broker.config.coordinator_keys import (
    OFFSETS_TOPIC_SEGMENT_BYTES as OFFSETS_TOPIC_SEGMENT_BYTES,
)
from barnabas_broker.config.key import (
    MAX_DOUBLE,
    MAX_INT,
    MAX_LONG,
    Key,
    boolean,
    dynamic,
    integer,
    number,
    one_of,
    optional_integer,
    optional_text,
    text,
    words_of,
)

# Identity, listeners, ZooKeeper
BROKER_ID = Key("broker.id", integer(0, MAX_INT), -1, "The broker's id; required.")
BROKER_RACK = Key("broker.rack", optional_text, None, "Rack, for replica assignment.")
LISTENERS = Key(
    "listeners", text, "PLAINTEXT://:9092", "Addresses to bind: NAME://host:port, comma separated."
)
ADVERTISED_LISTENERS = Key(
    "advertised.listeners", optional_text, None, "Addresses for others; default: listeners."
)
INTER_BROKER_LISTENER_NAME = Key(
    "inter.broker.listener.name",
    optional_text,
    None,
    "The listener for replication and control, not for clients; required.",
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

MAX_CONNECTIONS = Key(
    "max.connections",
    integer(1, MAX_INT),
    MAX_INT,
    "Client connections; at most what the limit of open files allows. Divided evenly between the"
    " client listeners; the listener between brokers has no limit.",
)
CONNECTIONS_MAX_IDLE_MS = Key(
    "connections.max.idle.ms",
    integer(-1),
    600000,
    "A client that sends no request for so long is disconnected, ms; -1: never.",
)

# Topics
NUM_PARTITIONS = Key("num.partitions", integer(1, MAX_INT), 1, "Default number of partitions.")
DEFAULT_REPLICATION_FACTOR = Key(
    "default.replication.factor", integer(1, 32767), 1, "Default number of replicas."
)
AUTO_CREATE_TOPICS_ENABLE = Key(
    "auto.create.topics.enable", boolean, False, "Create a topic on its first metadata request."
)
DELETE_TOPIC_ENABLE = Key("delete.topic.enable", boolean, True, "Allow topics to be deleted.")

# The log
LOG_DIR = Key("log.dir", text, "/tmp/barnabas-logs", "Data directory, if log.dirs is unset.")
LOG_DIRS = Key("log.dirs", optional_text, None, "Data directories, comma separated.")
LOG_SEGMENT_BYTES = dynamic("log.segment.bytes", integer(14, MAX_INT), 1073741824, "Segment size.")
LOG_ROLL_MS = dynamic("log.roll.ms", optional_integer(1), None, "Segment age, ms.")
LOG_ROLL_HOURS = Key("log.roll.hours", integer(1, MAX_INT), 168, "Segment age, hours.")
LOG_ROLL_JITTER_MS = dynamic(
    "log.roll.jitter.ms", optional_integer(0), None, "Random reduction of the segment age, ms."
)
LOG_ROLL_JITTER_HOURS = Key(
    "log.roll.jitter.hours", integer(0, MAX_INT), 0, "Random reduction of the segment age, hours."
)
LOG_RETENTION_MS = dynamic(
    "log.retention.ms", optional_integer(-1), None, "Age limit, ms; -1 none."
)
LOG_RETENTION_MINUTES = Key(
    "log.retention.minutes", optional_integer(-1, MAX_INT), None, "Age limit, minutes; -1 none."
)
LOG_RETENTION_HOURS = Key(
    "log.retention.hours", integer(-1, MAX_INT), 168, "Age limit, hours; -1 none."
)
LOG_RETENTION_BYTES = dynamic(
    "log.retention.bytes", integer(-1), -1, "Size limit of a partition; -1 none."
)
LOG_RETENTION_CHECK_INTERVAL_MS = Key(
    "log.retention.check.interval.ms", integer(1), 300000, "Time between retention scans, ms."
)
LOG_CLEANUP_POLICY = dynamic(
    "log.cleanup.policy",
    words_of("compact", "delete"),
    "delete",
    "delete: old segments are removed; compact: of each key the newest record stays; or both.",
    is_list=True,
)
LOG_CLEANER_ENABLE = Key("log.cleaner.enable", boolean, True, "Compact the logs that ask for it.")
LOG_CLEANER_THREADS = Key(
    "log.cleaner.threads", integer(1, MAX_INT), 1, "Logs compacted at the same time."
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = dynamic(
    "log.cleaner.dedupe.buffer.size",
    integer(1048577),
    134217728,
    "Memory for the offset maps of all passes: 24 bytes a key, and a tenth is left free.",
)
LOG_CLEANER_IO_BUFFER_SIZE = dynamic(
    "log.cleaner.io.buffer.size", integer(1, MAX_INT), 524288, "Bytes that all passes read at once."
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = dynamic(
    "log.cleaner.io.max.bytes.per.second",
    number(1, MAX_DOUBLE),
    MAX_DOUBLE,
    "Bytes that compaction reads and writes per second.",
)
LOG_CLEANER_BACKOFF_MS = dynamic(
    "log.cleaner.backoff.ms", integer(1), 15000, "Pause while no log needs compaction, ms."
)
LOG_CLEANER_MIN_CLEANABLE_RATIO = dynamic(
    "log.cleaner.min.cleanable.ratio",
    number(0, 1),
    0.5,
    "A log is compacted when more than this part of it is dirty.",
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS = dynamic(
    "log.cleaner.min.compaction.lag.ms", integer(0), 0, "Records younger than this stay, ms."
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS = dynamic(
    "log.cleaner.max.compaction.lag.ms",
    integer(1),
    MAX_LONG,
    "A log with dirty records older than this is compacted whatever its dirty ratio, ms.",
)
LOG_CLEANER_DELETE_RETENTION_MS = dynamic(
    "log.cleaner.delete.retention.ms",
    integer(0),
    86400000,
    "How long a tombstone stays after the first pass that meets it, ms.",
)
PRODUCER_ID_EXPIRATION_MS = dynamic(
    "producer.id.expiration.ms",
    integer(1, MAX_INT),
    86400000,
    "A partition forgets an idempotent producer that has not written for so long, ms.",
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = Key(
    "producer.id.expiration.check.interval.ms",
    integer(1, MAX_INT),
    600000,
    "Time between scans for producers to forget, ms.",
)
LOG_RECORD_VALIDATION = dynamic(
    "log.record.validation",
    one_of("readable", "exact"),
    "readable",
    "Not Kafka's. What producers' records must be: readable here, or exactly as Kafka writes them.",
)
LOG_INDEX_SIZE_MAX_BYTES = dynamic(
    "log.index.size.max.bytes", integer(4, MAX_INT), 10485760, "Largest index of a segment."
)
LOG_INDEX_INTERVAL_BYTES = dynamic(
    "log.index.interval.bytes", integer(0, MAX_INT), 4096, "Bytes of log between index entries."
)
LOG_FLUSH_INTERVAL_MESSAGES = dynamic(
    "log.flush.interval.messages", integer(1), MAX_LONG, "Records between fsyncs."
)
LOG_FLUSH_INTERVAL_MS = dynamic(
    "log.flush.interval.ms", optional_integer(0), None, "Longest time a record stays unflushed, ms."
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
LOG_SEGMENT_DELETE_DELAY_MS = dynamic(
    "log.segment.delete.delay.ms", integer(0), 60000, "Delay before deleted files are removed, ms."
)
LOG_INITIAL_TASK_DELAY_MS = Key(
    "log.initial.task.delay.ms", integer(0), 30000, "Delay of the first periodic tasks, ms."
)
LOG_DIR_STAMP_INTERVAL_MS = Key(
    "log.dir.stamp.interval.ms",
    integer(100),
    5000,
    "Not Kafka's. Interval at which data directories are stamped, to recognize older copies, ms.",
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = dynamic(
    "num.recovery.threads.per.data.dir", integer(1, 64), 1, "Logs loaded in parallel."
)
LOG_MESSAGE_TIMESTAMP_TYPE = dynamic(
    "log.message.timestamp.type",
    one_of("CreateTime", "LogAppendTime"),
    "CreateTime",
    "Source of the record timestamps.",
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = dynamic(
    "log.message.timestamp.before.max.ms", integer(0), MAX_LONG, "Limit of past timestamps, ms."
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = dynamic(
    "log.message.timestamp.after.max.ms", integer(0), MAX_LONG, "Limit of future timestamps, ms."
)
COMPRESSION_TYPE = dynamic(
    "compression.type",
    one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "producer",
    "Codec of stored batches; producer: as received.",
)
MESSAGE_MAX_BYTES = dynamic("message.max.bytes", integer(0, MAX_INT), 1048588, "Largest batch.")

# Replication and control
MIN_INSYNC_REPLICAS = dynamic(
    "min.insync.replicas", integer(1, MAX_INT), 1, "In-sync replicas needed by acks=all."
)
UNCLEAN_LEADER_ELECTION_ENABLE = dynamic(
    "unclean.leader.election.enable",
    boolean,
    False,
    "Elect outside the ISR if all of it is offline.",
)
LAST_REPLICA_FSYNC_ENABLE = Key(
    "last.replica.fsync.enable",
    boolean,
    True,
    "Not Kafka's. With an ISR that requires flushing, count flushed records only; false: as Kafka.",
)
HIGH_WATERMARK_MIN_ISR_GATE_ENABLE = Key(
    "high.watermark.min.isr.gate.enable",
    boolean,
    True,
    "Not Kafka's. Hold the high watermark while under min ISR (KIP-966); false: Kafka before 3.7.",
)
ELIGIBLE_LEADER_REPLICAS_ENABLE = Key(
    "eligible.leader.replicas.enable",
    boolean,
    True,
    "Not Kafka's. Prefer eligible replicas to an ISR member that lost records (after KIP-966);"
    " false: as Kafka.",
)
ELIGIBLE_LEADER_REPLICAS_WAIT_MS = Key(
    "eligible.leader.replicas.wait.ms",
    integer(0),
    30000,
    "Not Kafka's. Wait before an ISR member that lost records leads, or an eligible replica for an"
    " ISR that is gone, ms.",
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
    "replica.fetch.min.bytes", integer(0, MAX_INT), 1, "Bytes for which a fetch waits."
)
REPLICA_FETCH_WAIT_MAX_MS = Key(
    "replica.fetch.wait.max.ms", integer(0, MAX_INT), 500, "Longest wait of a fetch, ms."
)
REPLICA_FETCH_BACKOFF_MS = Key(
    "replica.fetch.backoff.ms", integer(0, MAX_INT), 1000, "Longest backoff after an error, ms."
)
REPLICA_SOCKET_TIMEOUT_MS = Key(
    "replica.socket.timeout.ms", integer(1, MAX_INT), 30000, "Timeout of a follower's requests, ms."
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = Key(
    "replica.high.watermark.checkpoint.interval.ms",
    integer(1),
    5000,
    "Time between writes of the high watermarks, ms.",
)
LEADER_REPLICATION_THROTTLED_RATE = dynamic(
    "leader.replication.throttled.rate",
    integer(0),
    MAX_LONG,
    "Bytes per second to throttled replicas.",
)
FOLLOWER_REPLICATION_THROTTLED_RATE = dynamic(
    "follower.replication.throttled.rate",
    integer(0),
    MAX_LONG,
    "Bytes per second fetched by throttled replicas.",
)
AUTO_LEADER_REBALANCE_ENABLE = dynamic(
    "auto.leader.rebalance.enable", boolean, True, "Move leadership to preferred replicas."
)
LEADER_IMBALANCE_PER_BROKER_PERCENTAGE = dynamic(
    "leader.imbalance.per.broker.percentage", integer(0, 100), 10, "Imbalance that is corrected, %."
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = dynamic(
    "leader.imbalance.check.interval.seconds", integer(1), 300, "Time between imbalance checks, s."
)
CONTROLLER_SOCKET_TIMEOUT_MS = Key(
    "controller.socket.timeout.ms", integer(1, MAX_INT), 30000, "Timeout of control requests, ms."
)
FAILURE_DETECTION = Key(
    "failure.detection",
    one_of("evidence", "session"),
    "evidence",
    "Not Kafka's. evidence: leaders move when a control stream ends and reconnection is refused;"
    " session: only when the ZooKeeper session ends, as in Kafka.",
)
CONTROLLED_SHUTDOWN_ENABLE = Key(
    "controlled.shutdown.enable", boolean, True, "Move leaderships before stopping."
)
CONTROLLED_SHUTDOWN_MAX_RETRIES = Key(
    "controlled.shutdown.max.retries", integer(0, MAX_INT), 3, "Attempts of a controlled shutdown."
)
CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS = Key(
    "controlled.shutdown.retry.backoff.ms", integer(0), 5000, "Pause between attempts, ms."
)
FETCH_MAX_BYTES = Key(
    "fetch.max.bytes", integer(1024, MAX_INT), 57671680, "Largest fetch response."
)
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
    "Not Kafka's. Where a follower truncates; high-watermark: as Kafka before 0.11, which loses"
    " records.",
)
REPLICA_TRUNCATION_LOOKUP = Key(
    "replica.truncation.lookup",
    one_of("fetch", "offsets-for-leader-epoch"),
    "fetch",
    "Not Kafka's. How a follower finds the end of an epoch: by fetching (Kafka since 2.7) or"
    " before it.",
)
LOG_DISK = Key(
    "log.disk",
    one_of("posix", "volatile"),
    "posix",
    "Not Kafka's. volatile: unflushed data is lost with the process, so that kill -9 is a power"
    " loss.",
)
PAUSE_DIRECTORY = Key(
    "pause.directory",
    optional_text,
    None,
    "Not Kafka's. Files named after pause points pause the broker there; unset: never.",
)

NOT_BUILT: dict[str, str] = {
    "max.connections.per.ip": "gRPC accepts connections itself and does not count them by address;"
    " use max.connections, or limit them in a firewall",
}
"""Kafka's keys that are refused, with the reason."""

BROKER_KEYS: dict[str, Key] = {  # type: ignore[type-arg]
    value.name: value for value in list(globals().values()) if isinstance(value, Key)
}

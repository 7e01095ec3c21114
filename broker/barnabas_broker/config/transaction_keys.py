"""The broker keys of transactions and of the topic that holds their states."""

from barnabas_broker.config.key import MAX_INT, Key, boolean, dynamic, integer

TRANSACTIONAL_ID_EXPIRATION_MS = Key(
    "transactional.id.expiration.ms",
    integer(1, MAX_INT),
    604800000,
    "A transactional id that was not used for so long is forgotten, ms.",
)
TRANSACTION_MAX_TIMEOUT_MS = Key(
    "transaction.max.timeout.ms",
    integer(1, MAX_INT),
    900000,
    "Longest timeout that a producer may ask for its transactions, ms.",
)
TRANSACTION_TWO_PHASE_COMMIT_ENABLE = Key(
    "transaction.two.phase.commit.enable",
    boolean,
    True,
    "Let producers ask for transactions that never time out, and end when they are told to"
    " (KIP-939).",
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = Key(
    "transaction.state.log.replication.factor",
    integer(1, 32767),
    3,
    "Replicas of `__transaction_state`; it is not created with fewer brokers.",
)
TRANSACTION_STATE_LOG_MIN_ISR = Key(
    "transaction.state.log.min.isr",
    integer(1, MAX_INT),
    2,
    "`min.insync.replicas` of `__transaction_state`; without effect once the topic exists.",
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS = Key(
    "transaction.state.log.num.partitions",
    integer(1, MAX_INT),
    50,
    "Partitions of `__transaction_state`; without effect once the topic exists.",
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = Key(
    "transaction.state.log.segment.bytes",
    integer(1, MAX_INT),
    104857600,
    "Segment size of `__transaction_state`; without effect once the topic exists.",
)
TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE = Key(
    "transaction.state.log.load.buffer.size",
    integer(1, MAX_INT),
    5242880,
    "Bytes read at once from `__transaction_state` when a coordinator loads it.",
)
TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS = Key(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    integer(1, MAX_INT),
    10000,
    "Time between scans for transactions that have timed out, ms.",
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS = Key(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    integer(1, MAX_INT),
    3600000,
    "Time between scans for transactional ids that have expired, ms.",
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE = dynamic(
    "transaction.partition.verification.enable",
    boolean,
    True,
    "Ask the coordinator before a transaction's first batch is appended (KIP-890).",
)

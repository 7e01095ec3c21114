"""A broker's configuration: Kafka's dotted names in, typed values out; immutable.

Text comes from a properties file, `--set` options or znodes; `Config` checks every key and value
once, so that reading one later cannot fail.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from barnabas_broker.config import keys
from barnabas_broker.config.key import MAX_LONG, InvalidConfig, Key
from barnabas_broker.config.listener import Listener, parse_listeners
from barnabas_broker.config.log_config import TOPIC_KEYS, LogConfig, parse_topic_overrides

T = TypeVar("T")

HOUR_MS = 3_600_000

# The broker's key behind each setting of a topic (the times have three spellings, see below).
BROKER_KEY_OF_TOPIC_KEY: dict[str, Key] = {  # type: ignore[type-arg]
    "segment.bytes": keys.LOG_SEGMENT_BYTES,
    "segment.index.bytes": keys.LOG_INDEX_SIZE_MAX_BYTES,
    "index.interval.bytes": keys.LOG_INDEX_INTERVAL_BYTES,
    "retention.bytes": keys.LOG_RETENTION_BYTES,
    "flush.messages": keys.LOG_FLUSH_INTERVAL_MESSAGES,
    "file.delete.delay.ms": keys.LOG_SEGMENT_DELETE_DELAY_MS,
    "max.message.bytes": keys.MESSAGE_MAX_BYTES,
    "min.insync.replicas": keys.MIN_INSYNC_REPLICAS,
    "message.timestamp.type": keys.LOG_MESSAGE_TIMESTAMP_TYPE,
    "message.timestamp.before.max.ms": keys.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    "message.timestamp.after.max.ms": keys.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    "compression.type": keys.COMPRESSION_TYPE,
    "cleanup.policy": keys.LOG_CLEANUP_POLICY,
    "unclean.leader.election.enable": keys.UNCLEAN_LEADER_ELECTION_ENABLE,
}


# Those with three spellings, the one that counts first.
BROKER_KEYS_OF_TIMES: dict[str, tuple[Key, ...]] = {  # type: ignore[type-arg]
    "segment.ms": (keys.LOG_ROLL_MS, keys.LOG_ROLL_HOURS),
    "segment.jitter.ms": (keys.LOG_ROLL_JITTER_MS, keys.LOG_ROLL_JITTER_HOURS),
    "retention.ms": (keys.LOG_RETENTION_MS, keys.LOG_RETENTION_MINUTES, keys.LOG_RETENTION_HOURS),
    "flush.ms": (keys.LOG_FLUSH_INTERVAL_MS, keys.LOG_FLUSH_SCHEDULER_INTERVAL_MS),
}


class Config:
    """A checked set of broker settings. `config[keys.NUM_PARTITIONS]` is typed by its key.

    Raises InvalidConfig for an unknown key, a bad value, or two settings that contradict.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = dict(properties or {})
        self._values: dict[str, Any] = {}
        for name, value in self.properties.items():
            key = keys.BROKER_KEYS.get(name)
            if key is None:
                raise InvalidConfig(f"unknown or unsupported broker config {name!r}")
            self._values[name] = key.read(value)
        self._log_defaults = self._broker_log_config()
        self._check()

    def __getitem__(self, key: Key[T]) -> T:
        return cast(T, self._values.get(key.name, key.default))

    def is_set(self, key: Key[T]) -> bool:
        """Whether the key was given, as opposed to its default."""
        return key.name in self._values

    def log_config(self, overrides: Mapping[str, str] | None = None) -> LogConfig:
        """A topic's settings: its own overrides over this broker's. Raises InvalidConfig."""
        if not overrides:
            return self._log_defaults
        changes = cast(dict[str, Any], parse_topic_overrides(overrides))
        return replace(self._log_defaults, **changes)

    @property
    def log_directories(self) -> list[str]:
        """`log.dirs`, or else `log.dir`."""
        listed = self[keys.LOG_DIRS] or self[keys.LOG_DIR]
        return [path.strip() for path in listed.split(",") if path.strip()]

    @property
    def listeners(self) -> list[Listener]:
        """Where to bind."""
        return parse_listeners(self[keys.LISTENERS])

    @property
    def advertised_listeners(self) -> list[Listener]:
        """What others are told; port 0 stands for the port that was bound."""
        return parse_listeners(self[keys.ADVERTISED_LISTENERS] or self[keys.LISTENERS])

    @property
    def inter_broker_listener(self) -> str:
        """The listener of replication and control."""
        return self[keys.INTER_BROKER_LISTENER_NAME] or ""

    @property
    def zookeeper_connection_timeout_ms(self) -> int:
        return self[keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS] or self[keys.ZOOKEEPER_SESSION_TIMEOUT_MS]

    def check_broker(self) -> None:
        """What a broker cannot start without; raises InvalidConfig with one line."""
        if self[keys.BROKER_ID] < 0:
            raise InvalidConfig("broker.id is required")
        if not self[keys.ZOOKEEPER_CONNECT]:
            raise InvalidConfig("zookeeper.connect is required")
        names = [listener.name for listener in self.listeners]
        if self.inter_broker_listener not in names or len(names) < 2:
            raise InvalidConfig(
                "inter.broker.listener.name must name one of at least two listeners (clients must"
                f" not reach replication and control); listeners are {', '.join(names)}"
            )
        unbound = {a.name for a in self.advertised_listeners} - set(names)
        if unbound:
            raise InvalidConfig(f"advertised.listeners names {sorted(unbound)}, not in listeners")
        for listener in self.advertised_listeners:
            if listener.address.host in ("", "0.0.0.0", "::"):
                raise InvalidConfig(
                    f"advertised.listeners: {listener} is not an address others can reach"
                )

    def _broker_log_config(self) -> LogConfig:
        values: dict[str, Any] = {
            name.replace(".", "_"): self[key] for name, key in BROKER_KEY_OF_TOPIC_KEY.items()
        }
        assert values.keys() <= {name.replace(".", "_") for name in TOPIC_KEYS}
        return LogConfig(
            **values,
            segment_ms=self[keys.LOG_ROLL_MS] or self[keys.LOG_ROLL_HOURS] * HOUR_MS,
            segment_jitter_ms=(
                self[keys.LOG_ROLL_JITTER_MS] or self[keys.LOG_ROLL_JITTER_HOURS] * HOUR_MS
            ),
            retention_ms=self._retention_ms(),
            flush_ms=(
                interval
                if (interval := self[keys.LOG_FLUSH_INTERVAL_MS]) is not None
                else self[keys.LOG_FLUSH_SCHEDULER_INTERVAL_MS]
            ),
        )

    def _retention_ms(self) -> int:
        """Milliseconds beat minutes beat hours; -1 in any of them means no limit."""
        if (milliseconds := self[keys.LOG_RETENTION_MS]) is not None:
            return milliseconds
        if (minutes := self[keys.LOG_RETENTION_MINUTES]) is not None:
            return -1 if minutes < 0 else min(minutes * 60_000, MAX_LONG)
        hours = self[keys.LOG_RETENTION_HOURS]
        return -1 if hours < 0 else hours * HOUR_MS

    def _check(self) -> None:
        wait = self[keys.REPLICA_FETCH_WAIT_MAX_MS]
        if wait > self[keys.REPLICA_SOCKET_TIMEOUT_MS]:
            raise InvalidConfig("replica.fetch.wait.max.ms is above replica.socket.timeout.ms")
        if wait > self[keys.REPLICA_LAG_TIME_MAX_MS]:
            raise InvalidConfig("replica.fetch.wait.max.ms is above replica.lag.time.max.ms")

"""A broker's configuration: Kafka's dotted names in, typed values out; immutable.

The text comes from a properties file, `--set` options or znodes; `Config` checks every key and
value once, so that reading a value cannot fail.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from barnabas_broker.config import keys
from barnabas_broker.config.key import InvalidConfig, Key
from barnabas_broker.config.listener import Listener, parse_listeners
from barnabas_broker.config.log_config import (
    BROKER_KEYS_BEHIND,
    LogConfig,
    parse_topic_overrides,
)

T = TypeVar("T")

_MS_PER_UNIT = {"minutes": 60_000, "hours": 3_600_000}


def broker_key(name: str) -> Key[Any]:
    """Raises InvalidConfig."""
    key = keys.BROKER_KEYS.get(name)
    if key is None:
        reason = f": {keys.NOT_BUILT[name]}" if name in keys.NOT_BUILT else ""
        raise InvalidConfig(f"unknown or unsupported broker config {name!r}{reason}")
    return key


class Config:
    """A checked set of broker settings. `config[keys.NUM_PARTITIONS]` is typed by its key.

    Raises InvalidConfig for an unknown key, a bad value, or two settings that contradict.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = dict(properties or {})
        self._values: dict[str, Any] = {}
        for name, value in self.properties.items():
            self._values[name] = broker_key(name).read(value)
        self._log_defaults = LogConfig(
            **{name.replace(".", "_"): self._topic_default(name) for name in BROKER_KEYS_BEHIND}
        )
        self._check()

    def __getitem__(self, key: Key[T]) -> T:
        return cast(T, self._values.get(key.name, key.default))

    def log_config(self, overrides: Mapping[str, str] | None = None) -> LogConfig:
        """A topic's settings: its own overrides over this broker's. Raises InvalidConfig."""
        if not overrides:
            return self._log_defaults
        changes = cast(dict[str, Any], parse_topic_overrides(overrides))
        return replace(self._log_defaults, **changes)

    @property
    def log_directories(self) -> list[str]:
        """`log.dirs`, or `log.dir` if that is unset."""
        listed = self[keys.LOG_DIRS] or self[keys.LOG_DIR]
        return [path.strip() for path in listed.split(",") if path.strip()]

    @property
    def listeners(self) -> list[Listener]:
        """Where to bind."""
        return parse_listeners(self[keys.LISTENERS])

    @property
    def advertised_listeners(self) -> list[Listener]:
        """The addresses sent to others; port 0 stands for the port that was bound."""
        return parse_listeners(self[keys.ADVERTISED_LISTENERS] or self[keys.LISTENERS])

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener for replication and control."""
        return self[keys.INTER_BROKER_LISTENER_NAME] or ""

    @property
    def zookeeper_connection_timeout_ms(self) -> int:
        return self[keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS] or self[keys.ZOOKEEPER_SESSION_TIMEOUT_MS]

    def check_broker(self) -> None:
        """Check what a broker needs to start; raises InvalidConfig with one line."""
        if self[keys.BROKER_ID] < 0:
            raise InvalidConfig("broker.id is required")
        if not self[keys.ZOOKEEPER_CONNECT]:
            raise InvalidConfig("zookeeper.connect is required")
        self._check_directories()
        names = [listener.name for listener in self.listeners]
        if self.inter_broker_listener not in names or len(names) < 2:
            raise InvalidConfig(
                "inter.broker.listener.name must name one of at least two listeners (clients must"
                f" not reach replication and control); listeners are {', '.join(names)}"
            )
        unbound = {a.name for a in self.advertised_listeners} - set(names)
        if unbound:
            raise InvalidConfig(f"advertised.listeners names {sorted(unbound)}, not in listeners")
        if self.inter_broker_listener not in {a.name for a in self.advertised_listeners}:
            raise InvalidConfig(
                "advertised.listeners has no address of inter.broker.listener.name,"
                f" {self.inter_broker_listener}"
            )
        for listener in self.advertised_listeners:
            if listener.address.host in ("", "0.0.0.0", "::"):
                raise InvalidConfig(
                    f"advertised.listeners: {listener} is not an address others can reach"
                )

    def _check_directories(self) -> None:
        found: set[str] = set()
        for directory in self.log_directories:
            if (path := os.path.abspath(directory)) in found:
                raise InvalidConfig(f"log.dirs names {directory} twice")
            found.add(path)
        if not found:
            raise InvalidConfig("log.dirs names no directory")

    def _topic_default(self, name: str) -> Any:
        """The value of the first broker key that has one, times in ms; -1 means no limit."""
        for key in BROKER_KEYS_BEHIND[name]:
            value = self[key]
            if value is not None:
                unit = _MS_PER_UNIT.get(key.name.rpartition(".")[2])
                return value if unit is None or value < 0 else value * unit
        raise AssertionError(f"no broker key behind {name} has a default")

    def _check(self) -> None:
        wait = self[keys.REPLICA_FETCH_WAIT_MAX_MS]
        if wait > self[keys.REPLICA_SOCKET_TIMEOUT_MS]:
            raise InvalidConfig("replica.fetch.wait.max.ms is above replica.socket.timeout.ms")
        if wait > self[keys.REPLICA_LAG_TIME_MAX_MS]:
            raise InvalidConfig("replica.fetch.wait.max.ms is above replica.lag.time.max.ms")

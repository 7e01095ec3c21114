"""The configuration in force: the properties at start, and the overrides in ZooKeeper.

Its readers read a value at each use, so that a change reaches all of them together. The order of
precedence is Kafka's: the broker's own override, the cluster's default, the properties file, the
default. A topic's overrides come before all of them (`Config.log_config`).
"""

from collections.abc import Mapping
from enum import StrEnum

from barnabas_broker.config import keys
from barnabas_broker.config.config import Config, broker_key
from barnabas_broker.config.key import InvalidConfig
from barnabas_broker.config.log_config import BROKER_KEYS_BEHIND


class Source(StrEnum):
    """The origin of a value, in order of precedence."""

    TOPIC = "topic"
    BROKER = "broker-dynamic"
    CLUSTER = "cluster-default"
    STATIC = "static"
    DEFAULT = "default"


class DynamicConfig(Config):
    """A `Config` whose dynamic keys change while it is read, all in one step."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._overrides: dict[Source, dict[str, str]] = {Source.BROKER: {}, Source.CLUSTER: {}}

    def override(self, source: Source, overrides: Mapping[str, str]) -> None:
        """Replace all overrides of one source, BROKER or CLUSTER.

        Raises InvalidConfig, and changes nothing, if one is unknown, not dynamic, has a wrong value
        or contradicts another setting.
        """
        changed = {**self._overrides, source: dict(overrides)}
        merged = self._merged(changed)
        self._overrides = changed
        self._values, self._log_defaults = merged._values, merged._log_defaults

    def overrides(self, source: Source) -> Mapping[str, str]:
        """The overrides of one source, BROKER or CLUSTER, that are in force."""
        return self._overrides[source]

    def check_override(self, source: Source, overrides: Mapping[str, str]) -> None:
        """Raise InvalidConfig if `override` would."""
        self._merged({**self._overrides, source: dict(overrides)})

    def _merged(self, overrides: Mapping[Source, Mapping[str, str]]) -> Config:
        for layer in overrides.values():
            check_dynamic(layer)
        if keys.MIN_INSYNC_REPLICAS.name in overrides[Source.BROKER]:
            # The controller derives from it which replicas have every committed record (KIP-966).
            raise InvalidConfig(
                f"{keys.MIN_INSYNC_REPLICAS.name} is for topics or all brokers, not for one broker"
            )
        return Config({**self.properties, **overrides[Source.CLUSTER], **overrides[Source.BROKER]})

    def source_of(self, name: str) -> Source:
        """The origin of a broker key's value."""
        for source in (Source.BROKER, Source.CLUSTER):
            if name in self._overrides[source]:
                return source
        return Source.STATIC if name in self.properties else Source.DEFAULT

    def source_of_topic_key(self, name: str) -> Source:
        """The origin of a setting that the topic does not override."""
        found = (self.source_of(key.name) for key in BROKER_KEYS_BEHIND.get(name, ()))
        return next((source for source in found if source is not Source.DEFAULT), Source.DEFAULT)


def check_dynamic(overrides: Mapping[str, str]) -> None:
    """Raise InvalidConfig for a broker key that cannot be changed while the broker runs."""
    for name, text in overrides.items():
        key = broker_key(name)
        if not key.dynamic:
            raise InvalidConfig(f"{name} cannot be changed while the broker runs")
        key.read(text)

"""A broker's configuration: names, defaults, and what is refused."""

from pathlib import Path

import barnabas_broker
import pytest
from barnabas_broker.config import (
    TOPIC_KEYS,
    Config,
    InvalidConfig,
    Key,
    LogConfig,
    format_properties,
    keys,
    parse_properties,
)
from barnabas_broker.config.log_config import BROKER_KEYS_BEHIND

TWO_LISTENERS = {
    "broker.id": "1",
    "zookeeper.connect": "localhost:2181",
    "listeners": "CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:19092",
    "inter.broker.listener.name": "INTERNAL",
}


def test_defaults_are_kafkas_but_for_topic_auto_creation():
    config = Config()
    assert config[keys.REPLICA_LAG_TIME_MAX_MS] == 30000
    assert config[keys.LOG_RETENTION_HOURS] == 168
    assert config[keys.AUTO_CREATE_TOPICS_ENABLE] is False
    assert config.log_config() == LogConfig()


@pytest.mark.parametrize(
    ("properties", "word"),
    [
        ({"no.such.key": "1"}, "no.such.key"),
        ({"log.cleaner.hash.algorithm": "MD5"}, "unsupported"),
        ({"log.cleanup.policy": "compact,sometimes"}, "must be a list of compact, delete"),
        ({"log.cleaner.min.cleanable.ratio": "2"}, "between 0 and 1"),
        ({"max.connections.per.ip": "5"}, "gRPC accepts connections itself"),
        ({"max.connections": "0"}, "between"),
        ({"num.partitions": "many"}, "whole number"),
        ({"num.partitions": "1_0"}, "whole number"),
        ({"num.partitions": "0"}, "between"),
        ({"delete.topic.enable": "yes"}, "true or false"),
        ({"log.message.timestamp.type": "Sometime"}, "one of"),
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.socket.timeout.ms"),
    ],
)
def test_bad_settings_are_refused_by_name(properties, word):
    with pytest.raises(InvalidConfig, match=word):
        Config(properties)


def test_milliseconds_beat_minutes_beat_hours():
    retention = {"log.retention.hours": "1"}
    assert Config(retention).log_config().retention_ms == 3_600_000
    retention["log.retention.minutes"] = "2"
    assert Config(retention).log_config().retention_ms == 120_000
    retention["log.retention.ms"] = "3"
    assert Config(retention).log_config().retention_ms == 3
    assert Config({"log.retention.hours": "-1"}).log_config().retention_ms == -1


def test_a_topic_overrides_its_broker():
    config = Config({"log.segment.bytes": "1000", "min.insync.replicas": "2"})
    log_config = config.log_config({"segment.bytes": "2000"})
    assert (log_config.segment_bytes, log_config.min_insync_replicas) == (2000, 2)
    with pytest.raises(InvalidConfig, match="unknown topic config"):
        config.log_config({"segment.size": "1"})
    with pytest.raises(InvalidConfig, match="retention.ms"):
        config.log_config({"retention.ms": "soon"})


def test_every_topic_setting_has_a_broker_default():
    topics_only = {f"{side}.replication.throttled.replicas" for side in ("leader", "follower")}
    assert set(TOPIC_KEYS) == set(BROKER_KEYS_BEHIND) | topics_only


def test_a_broker_needs_an_id_zookeeper_and_a_listener_of_its_own_for_replication():
    Config(TWO_LISTENERS).check_broker()
    for missing in ("broker.id", "zookeeper.connect", "inter.broker.listener.name"):
        rest = {name: value for name, value in TWO_LISTENERS.items() if name != missing}
        with pytest.raises(InvalidConfig, match=missing):
            Config(rest).check_broker()


def test_an_advertised_address_must_be_reachable():
    unreachable = TWO_LISTENERS | {"listeners": "CLIENT://:9092,INTERNAL://:19092"}
    with pytest.raises(InvalidConfig, match="reach"):
        Config(unreachable).check_broker()


def test_brokers_must_reach_one_another_at_an_advertised_address():
    one = TWO_LISTENERS | {"advertised.listeners": "CLIENT://host:9092"}
    with pytest.raises(InvalidConfig, match="no address of inter.broker.listener.name, INTERNAL"):
        Config(one).check_broker()


@pytest.mark.parametrize("text", [",", " , ,", "/a,/b,/a", "/a,/a/", "/a,/b/../a", "/a,\0"])
def test_data_directories_must_be_there_and_each_once(text):
    with pytest.raises(InvalidConfig, match="log.dirs"):
        Config(TWO_LISTENERS | {"log.dirs": text}).check_broker()


@pytest.mark.parametrize(
    "text", ["CLIENT", "CLIENT://x", "CLIENT://x:y", "CLIENT://x:²", "://h:1", "A://h:99999"]
)
def test_a_listener_needs_a_name_a_host_and_a_port(text):
    with pytest.raises(InvalidConfig, match="NAME://host:port"):
        Config({"listeners": text}).listeners  # noqa: B018


def test_properties_files_round_trip():
    properties = {"a.b": "1", "c": "x=y"}
    assert parse_properties("# comment\n\n" + format_properties(properties)) == properties
    with pytest.raises(ValueError, match="line 1"):
        parse_properties("nonsense")


def unread(names: list[str]) -> list[str]:
    """Return the keys of `keys.py` that no module of the broker reads."""
    package = Path(barnabas_broker.__file__).parent
    sources = [path.read_text() for path in package.rglob("*.py")]
    return [name for name in names if not any(f"keys.{name}" in source for source in sources)]


def test_a_setting_that_does_nothing_is_not_accepted():
    names = [name for name, value in vars(keys).items() if isinstance(value, Key)]
    assert len(names) > 40
    assert unread(names) == []
    assert unread(["NUM_PARTITIONS", "NO_SUCH_KEY"]) == ["NO_SUCH_KEY"]

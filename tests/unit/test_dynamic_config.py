"""Settings that change while a broker runs: precedence, sources, refusals."""

import pytest
from barnabas_broker.config import DynamicConfig, InvalidConfig, LogConfig, Source, keys


def test_a_brokers_own_override_beats_the_clusters_default_beats_the_file():
    config = DynamicConfig({"message.max.bytes": "1000"})
    assert config[keys.MESSAGE_MAX_BYTES] == 1000
    config.override(Source.CLUSTER, {"message.max.bytes": "2000", "min.insync.replicas": "2"})
    assert config[keys.MESSAGE_MAX_BYTES] == 2000
    config.override(Source.BROKER, {"message.max.bytes": "3000"})
    assert config[keys.MESSAGE_MAX_BYTES] == 3000
    assert config.log_config().max_message_bytes == 3000
    assert config.log_config({"max.message.bytes": "4000"}).max_message_bytes == 4000
    config.override(Source.BROKER, {})
    config.override(Source.CLUSTER, {})
    assert config[keys.MESSAGE_MAX_BYTES] == 1000
    assert config.log_config() == LogConfig(max_message_bytes=1000)


def test_each_value_knows_where_it_was_found():
    config = DynamicConfig({"log.retention.hours": "1", "message.max.bytes": "1000"})
    config.override(Source.CLUSTER, {"min.insync.replicas": "2"})
    config.override(Source.BROKER, {"log.segment.bytes": "99"})
    assert config.source_of("message.max.bytes") is Source.STATIC
    assert config.source_of("min.insync.replicas") is Source.CLUSTER
    assert config.source_of("log.segment.bytes") is Source.BROKER
    assert config.source_of("compression.type") is Source.DEFAULT
    assert config.source_of_topic_key("retention.ms") is Source.STATIC
    assert config.source_of_topic_key("segment.bytes") is Source.BROKER
    assert config.source_of_topic_key("segment.ms") is Source.DEFAULT


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"broker.id": "7"}, "broker.id cannot be changed while the broker runs"),
        ({"no.such.key": "7"}, "unknown or unsupported broker config"),
        ({"min.insync.replicas": "none"}, "whole number"),
        ({"min.insync.replicas": "2", "message.max.bytes": "-1"}, "must be between"),
    ],
)
def test_a_refused_override_changes_nothing(overrides, words):
    config = DynamicConfig()
    config.override(Source.CLUSTER, {"min.insync.replicas": "3"})
    with pytest.raises(InvalidConfig, match=words):
        config.override(Source.CLUSTER, overrides)
    assert config[keys.MIN_INSYNC_REPLICAS] == 3
    assert config.overrides(Source.CLUSTER) == {"min.insync.replicas": "3"}
    config.override(Source.BROKER, {"message.max.bytes": "2000"})
    assert config[keys.MESSAGE_MAX_BYTES] == 2000


def test_the_minimum_isr_is_not_one_brokers_own_affair():
    config = DynamicConfig()
    config.override(Source.CLUSTER, {"min.insync.replicas": "2"})
    with pytest.raises(InvalidConfig, match="not for one broker"):
        config.override(Source.BROKER, {"min.insync.replicas": "1"})
    assert config[keys.MIN_INSYNC_REPLICAS] == 2


def test_every_dynamic_key_is_in_force_at_once():
    """A value is read at use, so no code may keep a copy.

    Other tests show the effect of each change. This one shows that the configuration object that
    code reads has the new value.
    """
    config = DynamicConfig()
    for key in keys.BROKER_KEYS.values():
        if key.dynamic and isinstance(key.default, bool):
            config.override(Source.BROKER, {key.name: str(not key.default).lower()})
            assert config[key] is not key.default
    assert sum(key.dynamic for key in keys.BROKER_KEYS.values()) >= 20

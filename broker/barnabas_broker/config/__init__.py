"""A broker's settings, under Kafka's dotted names and with Kafka's defaults."""

from barnabas_broker.config import keys
from barnabas_broker.config.altered import Change, InvalidChange, altered
from barnabas_broker.config.config import Config
from barnabas_broker.config.dynamic_config import DynamicConfig, Source, check_dynamic
from barnabas_broker.config.key import InvalidConfig, Key
from barnabas_broker.config.listener import Listener
from barnabas_broker.config.log_config import TOPIC_KEYS, LogConfig, parse_topic_overrides
from barnabas_broker.config.properties import format_properties, parse_properties

__all__ = [
    "TOPIC_KEYS",
    "Change",
    "Config",
    "DynamicConfig",
    "InvalidChange",
    "InvalidConfig",
    "Key",
    "Listener",
    "LogConfig",
    "Source",
    "altered",
    "check_dynamic",
    "format_properties",
    "keys",
    "parse_properties",
    "parse_topic_overrides",
]

"""Barnabas: a message broker that follows Kafka's design, and its client.

    from barnabas import Admin, Consumer, Producer

These are for asyncio; `barnabas.sync` has the same names for scripts and notebooks. Errors are in
`barnabas.errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.admin import Admin as Admin
    from barnabas.admin import ConfigResource as ConfigResource
    from barnabas.admin import NewTopic as NewTopic
    from barnabas.consumer import Consumer as Consumer
    from barnabas.consumer import ConsumerRecord as ConsumerRecord
    from barnabas.consumer import LogTruncationError as LogTruncationError
    from barnabas.producer import DeliveryHandle as DeliveryHandle
    from barnabas.producer import Producer as Producer
    from barnabas.producer import RecordMetadata as RecordMetadata
    from barnabas.topic_partition import TopicPartition as TopicPartition

__version__ = "0.1.0"

# Loaded when first asked for: brokers import this package too and need none of it.
_HOMES = {
    "Admin": "barnabas.admin",
    "ConfigResource": "barnabas.admin",
    "Consumer": "barnabas.consumer",
    "ConsumerRecord": "barnabas.consumer",
    "DeliveryHandle": "barnabas.producer",
    "LogTruncationError": "barnabas.consumer",
    "NewTopic": "barnabas.admin",
    "Producer": "barnabas.producer",
    "RecordMetadata": "barnabas.producer",
    "TopicPartition": "barnabas.topic_partition",
}

__all__ = [
    "Admin",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "DeliveryHandle",
    "LogTruncationError",
    "NewTopic",
    "Producer",
    "RecordMetadata",
    "TopicPartition",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

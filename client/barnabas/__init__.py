"""Barnabas: a message broker that follows Kafka's design, and its client.

    from barnabas import Admin, Consumer, Producer

These are for asyncio; `barnabas.sync` has the same names for scripts and notebooks. Errors are in
`barnabas.errors`.
"""

from barnabas_common.prepared_transaction import PreparedTransaction
from barnabas_common.topic_partition import TopicPartition

from barnabas import errors
from barnabas.admin import Admin, ConfigResource, NewTopic
from barnabas.consumer import (
    CommitFailedError,
    Consumer,
    ConsumerGroupMetadata,
    ConsumerRecord,
    LogTruncationError,
    OffsetAndMetadata,
    RebalanceListener,
)
from barnabas.producer import DeliveryHandle, Producer, RecordMetadata
from barnabas.transactional_loop import ProducerRecord, exactly_once

__version__ = "0.1.0"

__all__ = [
    "Admin",
    "CommitFailedError",
    "ConfigResource",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "DeliveryHandle",
    "LogTruncationError",
    "NewTopic",
    "OffsetAndMetadata",
    "PreparedTransaction",
    "Producer",
    "ProducerRecord",
    "RebalanceListener",
    "RecordMetadata",
    "TopicPartition",
    "errors",
    "exactly_once",
]

"""The consumer: records of assigned partitions, fetched ahead of the application; alone or in a
group."""

from barnabas.consumer.config import ConsumerConfig, ConsumerOptions
from barnabas.consumer.consumer import Consumer
from barnabas.consumer.listener import RebalanceListener
from barnabas.consumer.record import ConsumerRecord
from barnabas.consumer.subscription_state import LogTruncationError
from barnabas.group.offsets import CommitFailedError, ConsumerGroupMetadata, OffsetAndMetadata

__all__ = [
    "CommitFailedError",
    "Consumer",
    "ConsumerConfig",
    "ConsumerGroupMetadata",
    "ConsumerOptions",
    "ConsumerRecord",
    "LogTruncationError",
    "OffsetAndMetadata",
    "RebalanceListener",
]

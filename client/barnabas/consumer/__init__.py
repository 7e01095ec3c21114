"""The consumer: records of assigned partitions, fetched ahead of the application."""

from barnabas.consumer.config import ConsumerConfig, ConsumerOptions
from barnabas.consumer.consumer import Consumer
from barnabas.consumer.record import ConsumerRecord
from barnabas.consumer.subscription_state import LogTruncationError

__all__ = ["Consumer", "ConsumerConfig", "ConsumerOptions", "ConsumerRecord", "LogTruncationError"]

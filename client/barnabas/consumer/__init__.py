"""The consumer: records of assigned partitions, fetched ahead."""

from barnabas.consumer.config import ConsumerConfig, ConsumerOptions
from barnabas.consumer.consumer import Consumer
from barnabas.consumer.positions import LogTruncationError
from barnabas.consumer.record import ConsumerRecord

__all__ = ["Consumer", "ConsumerConfig", "ConsumerOptions", "ConsumerRecord", "LogTruncationError"]

"""The producer: records in, batches out, one delivery handle for each record."""

from barnabas.producer.config import ProducerConfig, ProducerOptions
from barnabas.producer.handle import DeliveryHandle, OnDelivery, RecordMetadata
from barnabas.producer.metrics import ProducerMetrics
from barnabas.producer.producer import Producer

__all__ = [
    "DeliveryHandle",
    "OnDelivery",
    "Producer",
    "ProducerConfig",
    "ProducerMetrics",
    "ProducerOptions",
    "RecordMetadata",
]

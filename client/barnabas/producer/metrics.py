"""The counters of a producer."""

from dataclasses import dataclass


@dataclass
class ProducerMetrics:
    """Counters since the start; `records_sent` counts a record once however often it is retried.

    `batches_retried` counts every repeated sending of a batch, `epochs_started` how often a batch
    was given up and those behind it were numbered under a new producer epoch.
    `requests_in_flight` and `buffer_available_bytes` are present values.
    """

    records_sent: int = 0
    records_acked: int = 0
    records_failed: int = 0
    batches_sent: int = 0
    batches_acked: int = 0
    batches_retried: int = 0
    batches_split: int = 0
    batches_failed: int = 0
    bytes_sent: int = 0
    epochs_started: int = 0
    requests_sent: int = 0
    requests_in_flight: int = 0
    buffer_available_bytes: int = 0

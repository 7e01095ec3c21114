"""The producer's options: Kafka's names in Python's spelling, and Kafka's defaults.

One name is shorter: `max_in_flight` is Kafka's `max.in.flight.requests.per.connection`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from barnabas_common.bootstrap_servers import parse_bootstrap_servers
from barnabas_common.errors import InvalidArgumentError
from barnabas_common.transport.stream import MAX_MESSAGE_BYTES

from barnabas.cluster import ClusterConfig
from barnabas.cluster.options import (
    check_bool,
    check_choice,
    check_str,
    config_of,
)

logger = logging.getLogger(__name__)

Acks = Literal[0, 1, -1, "0", "1", "-1", "all"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Partitioner = Literal["sticky", "round-robin"]

_ACKS: dict[object, int] = {0: 0, 1: 1, -1: -1, "0": 0, "1": 1, "-1": -1, "all": -1}
_INT_MAX = 2**31 - 1
# A leader remembers five batches of a producer, so no more may be unanswered.
_MAX_IN_FLIGHT_FOR_IDEMPOTENCE = 5
_BATCH_OVERHEAD = 61
# The batches of one request; beside them it names their partitions.
_LARGEST_REQUEST = MAX_MESSAGE_BYTES - 1024 * 1024


class ProducerOptions(TypedDict, total=False):
    """The keyword options of `Producer`; see `ProducerConfig` for meaning and defaults."""

    acks: Acks
    enable_idempotence: bool
    batch_size: int
    linger_ms: int
    max_in_flight: int
    compression_type: Compression
    buffer_memory: int
    retries: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    delivery_timeout_ms: int
    request_timeout_ms: int
    max_block_ms: int
    max_request_size: int
    metadata_max_age_ms: int
    partitioner: Partitioner
    client_id: str
    transactional_id: str | None
    transaction_timeout_ms: int
    enable_two_phase_commit: bool


@dataclass(frozen=True)
class ProducerConfig:
    """Sizes in bytes, times in milliseconds.

    `acks`: a record is confirmed never (0), by its leader (1), or by all in-sync replicas ("all").
    `enable_idempotence`: a retry never writes twice, and the order is kept. It needs acks="all",
    `retries` > 0 and `max_in_flight` <= 5; if it is not asked for by name, other values of these
    switch it off, as in Kafka.
    `batch_size`: of one batch of a partition, before compression.
    `linger_ms`: how long a batch that is not full waits for more records.
    `max_in_flight`: unanswered requests per broker. A partition is in one of them; with
    idempotence in more, if much waits, with at most five batches in all.
    `buffer_memory`: of all undelivered records; while it is full, `send` waits for `max_block_ms`.
    `delivery_timeout_ms`: within this time after `send` every record is delivered or failed.
    `max_request_size`: of one request, and of one record before compression; 63 MiB at most, and a
    larger one counts as that.
    `client_id`: the producer's name in its log messages and tasks.
    `transactional_id`: who this producer is across restarts; with it records are sent in
    transactions only. A producer that is started with it fences the one before. It needs what
    idempotence needs. `transaction_timeout_ms`: a transaction that is open for longer is aborted.
    `enable_two_phase_commit`: its transactions have no timeout and may be prepared (KIP-939).
    """

    acks: Acks = "all"
    enable_idempotence: bool = True
    batch_size: int = 16_384
    linger_ms: int = 0
    max_in_flight: int = 5
    compression_type: Compression = "none"
    buffer_memory: int = 33_554_432
    retries: int = _INT_MAX
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    metadata_max_age_ms: int = 300_000
    partitioner: Partitioner = "sticky"
    client_id: str = ""
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    enable_two_phase_commit: bool = False

    @classmethod
    def of(cls, options: ProducerOptions) -> "ProducerConfig":
        """Check the options. Raises `InvalidArgumentError` naming the invalid one.

        A default `delivery_timeout_ms` is raised to `linger_ms` + `request_timeout_ms` if needed.
        """
        config = config_of(cls, options, _MINIMA)
        config._check()
        config._check_transactional()
        config = config._with_idempotence_decided("enable_idempotence" in options)
        largest = min(config.max_request_size, _LARGEST_REQUEST)
        config = replace(config, max_request_size=largest)
        needed = config.linger_ms + config.request_timeout_ms
        if config.delivery_timeout_ms >= needed:
            return config
        if "delivery_timeout_ms" in options:
            raise InvalidArgumentError(
                f"delivery_timeout_ms ({config.delivery_timeout_ms}) must be at least "
                f"linger_ms + request_timeout_ms ({needed})"
            )
        return replace(config, delivery_timeout_ms=needed)

    def _check(self) -> None:
        check_choice("acks", self.acks, tuple(_ACKS))
        check_bool("enable_idempotence", self.enable_idempotence)
        check_choice("compression_type", self.compression_type, _COMPRESSIONS)
        check_choice("partitioner", self.partitioner, _PARTITIONERS)
        check_str("client_id", self.client_id)
        if self.buffer_memory < self.batch_size + _BATCH_OVERHEAD:
            raise InvalidArgumentError(
                f"buffer_memory ({self.buffer_memory}) must hold at least one batch "
                f"of batch_size ({self.batch_size})"
            )

    def _check_transactional(self) -> None:
        """Raise unless there is no transactional id, or what it needs."""
        check_bool("enable_two_phase_commit", self.enable_two_phase_commit)
        if self.transactional_id is None:
            if self.enable_two_phase_commit:
                raise InvalidArgumentError("enable_two_phase_commit needs a transactional_id")
            return
        check_str("transactional_id", self.transactional_id)
        if not self.transactional_id:
            raise InvalidArgumentError("transactional_id must not be empty")
        obstacle = self._obstacle_to_idempotence()
        if not self.enable_idempotence:
            obstacle = "enable_idempotence=True"
        if obstacle is not None:
            raise InvalidArgumentError(f"a transactional_id needs {obstacle}")

    def _with_idempotence_decided(self, asked_for: bool) -> "ProducerConfig":
        """Switch idempotence off where it cannot work; raise if it was asked for by name."""
        obstacle = self._obstacle_to_idempotence() if self.enable_idempotence else None
        if obstacle is None:
            return self
        if asked_for:
            raise InvalidArgumentError(f"enable_idempotence=True needs {obstacle}")
        logger.info("the producer is not idempotent: that needs %s", obstacle)
        return replace(self, enable_idempotence=False)

    def _obstacle_to_idempotence(self) -> str | None:
        if self.acks_code != -1:
            return f'acks="all", not {self.acks!r}'
        if self.retries == 0:
            return "retries above 0"
        if self.max_in_flight > _MAX_IN_FLIGHT_FOR_IDEMPOTENCE:
            return (
                f"max_in_flight of at most {_MAX_IN_FLIGHT_FOR_IDEMPOTENCE}, "
                f"not {self.max_in_flight}"
            )
        return None

    @property
    def acks_code(self) -> int:
        """The number in the request: 0, 1, or -1 for all."""
        return _ACKS[self.acks]

    def cluster(self, bootstrap_servers: str | Sequence[str]) -> ClusterConfig:
        """The part of the options that every client has. Raises `InvalidArgumentError`."""
        return ClusterConfig(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            metadata_max_age_ms=self.metadata_max_age_ms,
        )


_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_PARTITIONERS = ("sticky", "round-robin")
_MINIMA = {
    "batch_size": 0,
    "linger_ms": 0,
    "max_in_flight": 1,
    "buffer_memory": 0,
    "retries": 0,
    "retry_backoff_ms": 0,
    "retry_backoff_max_ms": 0,
    "delivery_timeout_ms": 1,
    "request_timeout_ms": 1,
    "max_block_ms": 0,
    "max_request_size": 1,
    "metadata_max_age_ms": 1,
    "transaction_timeout_ms": 1,
}

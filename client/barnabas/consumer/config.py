"""The consumer's options: Kafka's names in Python's spelling, and Kafka's defaults."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from barnabas.cluster import ClusterConfig
from barnabas.cluster.options import (
    check_bool,
    check_choice,
    check_str,
    config_of,
    parse_bootstrap_servers,
)

AutoOffsetReset = Literal["latest", "earliest", "none"]
IsolationLevel = Literal["read_uncommitted", "read_committed"]


class ConsumerOptions(TypedDict, total=False):
    """The keyword options of `Consumer`; see `ConsumerConfig` for meaning and defaults."""

    auto_offset_reset: AutoOffsetReset
    isolation_level: IsolationLevel
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    max_poll_records: int
    check_crcs: bool
    allow_auto_create_topics: bool
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    client_id: str


@dataclass(frozen=True)
class ConsumerConfig:
    """Sizes in bytes, times in milliseconds.

    `auto_offset_reset`: where to start without a position, or if the offset no longer exists;
    "none" raises instead. `fetch_min_bytes`, `fetch_max_wait_ms`: a broker answers when it has
    that much, or after that time. `fetch_max_bytes` bounds one answer, and what is buffered here.
    `client_id`: the consumer's name in its tasks.
    """

    auto_offset_reset: AutoOffsetReset = "latest"
    isolation_level: IsolationLevel = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    max_poll_records: int = 500
    check_crcs: bool = True
    allow_auto_create_topics: bool = True
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    client_id: str = ""

    @classmethod
    def of(cls, options: ConsumerOptions) -> "ConsumerConfig":
        """Check the options; raises `InvalidArgumentError` naming the invalid one."""
        config = config_of(cls, options, _MINIMA)
        check_choice("auto_offset_reset", config.auto_offset_reset, _RESETS)
        check_choice("isolation_level", config.isolation_level, _ISOLATION)
        check_bool("check_crcs", config.check_crcs)
        check_bool("allow_auto_create_topics", config.allow_auto_create_topics)
        check_str("client_id", config.client_id)
        return config

    @property
    def isolation_code(self) -> int:
        """The number in the request: 0 read_uncommitted, 1 read_committed."""
        return _ISOLATION.index(self.isolation_level)

    def cluster(self, bootstrap_servers: str | Sequence[str]) -> ClusterConfig:
        return ClusterConfig(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            metadata_max_age_ms=self.metadata_max_age_ms,
            allow_auto_create_topics=self.allow_auto_create_topics,
        )


_RESETS = ("latest", "earliest", "none")
_ISOLATION = ("read_uncommitted", "read_committed")
_MINIMA = {
    "fetch_min_bytes": 0,
    "fetch_max_wait_ms": 0,
    "fetch_max_bytes": 1,
    "max_partition_fetch_bytes": 1,
    "max_poll_records": 1,
    "request_timeout_ms": 1,
    "default_api_timeout_ms": 0,
    "retry_backoff_ms": 0,
    "retry_backoff_max_ms": 0,
    "metadata_max_age_ms": 1,
}

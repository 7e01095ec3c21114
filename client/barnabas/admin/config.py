"""The admin client's options."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from barnabas_common.bootstrap_servers import parse_bootstrap_servers

from barnabas.cluster import ClusterConfig
from barnabas.cluster.options import config_of


class AdminOptions(TypedDict, total=False):
    """The keyword options of `Admin`; see `AdminConfig` for meaning and defaults."""

    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


@dataclass(frozen=True)
class AdminConfig:
    """Times in milliseconds. `default_api_timeout_ms` bounds a call with all its retries."""

    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000

    @classmethod
    def of(cls, options: AdminOptions) -> "AdminConfig":
        """Check the options; raises `InvalidArgumentError` naming the invalid one."""
        return config_of(cls, options, _MINIMA)

    def cluster(self, bootstrap_servers: str | Sequence[str]) -> ClusterConfig:
        """The part of the options that every client has. Raises `InvalidArgumentError`."""
        return ClusterConfig(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            allow_auto_create_topics=False,
        )


_MINIMA = {
    "request_timeout_ms": 1,
    "default_api_timeout_ms": 1,
    "retry_backoff_ms": 0,
    "retry_backoff_max_ms": 0,
}

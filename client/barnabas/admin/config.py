"""The admin client's options."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypedDict

from barnabas.cluster import ClusterConfig
from barnabas.cluster.options import (
    check_int,
    check_known,
    parse_bootstrap_servers,
)


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
        """Checked options; raises `InvalidArgumentError` naming the one at fault."""
        check_known(options, [field.name for field in fields(cls)])
        config = cls(**options)
        for name in ("request_timeout_ms", "default_api_timeout_ms"):
            check_int(name, getattr(config, name), 1)
        for name in ("retry_backoff_ms", "retry_backoff_max_ms"):
            check_int(name, getattr(config, name), 0)
        return config

    def cluster(self, bootstrap_servers: str | Sequence[str]) -> ClusterConfig:
        return ClusterConfig(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            allow_auto_create_topics=False,
        )

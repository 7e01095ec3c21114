"""The consumer's options: Kafka's names in Python's spelling, and Kafka's defaults."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from barnabas_common.bootstrap_servers import parse_bootstrap_servers
from barnabas_common.errors import InvalidArgumentError, InvalidGroupIdError
from barnabas_common.messages.groups import STORAGES

from barnabas.cluster import ClusterConfig
from barnabas.cluster.options import (
    check_bool,
    check_choice,
    check_str,
    config_of,
)
from barnabas.group.assignors import ASSIGNORS
from barnabas.group.config import GroupConfig

AutoOffsetReset = Literal["latest", "earliest", "none"]
IsolationLevel = Literal["read_uncommitted", "read_committed"]
OffsetsStorage = Literal["kafka", "zookeeper"]


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
    client_rack: str
    group_id: str | None
    group_instance_id: str
    partition_assignment_strategy: Sequence[str]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    offsets_storage: OffsetsStorage


@dataclass(frozen=True)
class ConsumerConfig:
    """Sizes in bytes, times in milliseconds.

    `auto_offset_reset`: where to start without a position, or if the offset no longer exists;
    "none" raises instead. `isolation_level`: with "read_committed" the records of open and aborted
    transactions are not read. `fetch_min_bytes`, `fetch_max_wait_ms`: a broker answers when it has
    that much, or after that time, 30 s at most. `fetch_max_bytes` bounds one answer, and what is
    buffered here.
    `client_id`: the consumer's name in its tasks, and in descriptions of its group.

    With a `group_id` the consumer shares its topics with the others of that group.
    `group_instance_id` makes it a static member, whose restart rebalances nothing (KIP-345).
    `partition_assignment_strategy`: names of assignors, the preferred one first. A member is
    removed from its group without heartbeats for `session_timeout_ms`, or without a poll for
    `max_poll_interval_ms`. `offsets_storage`: "kafka", or "zookeeper" as in Kafka 0.8.
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
    client_rack: str = ""
    group_id: str | None = None
    group_instance_id: str = ""
    partition_assignment_strategy: Sequence[str] = ("range", "cooperative-sticky")
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    offsets_storage: OffsetsStorage = "kafka"

    @classmethod
    def of(cls, options: ConsumerOptions) -> "ConsumerConfig":
        """Check the options; raises `InvalidArgumentError` naming the invalid one."""
        config = config_of(cls, options, _MINIMA)
        check_choice("auto_offset_reset", config.auto_offset_reset, _RESETS)
        check_choice("isolation_level", config.isolation_level, _ISOLATION)
        check_bool("check_crcs", config.check_crcs)
        check_bool("allow_auto_create_topics", config.allow_auto_create_topics)
        check_bool("enable_auto_commit", config.enable_auto_commit)
        check_choice("offsets_storage", config.offsets_storage, STORAGES)
        for name in ("client_id", "client_rack", "group_instance_id"):
            check_str(name, getattr(config, name))
        config._check_group()
        return config

    def _check_group(self) -> None:
        if self.group_id is None:
            if self.group_instance_id:
                raise InvalidArgumentError("group_instance_id needs a group_id")
            return
        check_str("group_id", self.group_id)
        if not self.group_id:
            raise InvalidGroupIdError("group_id must not be empty")
        names = self.partition_assignment_strategy
        if isinstance(names, str) or not names:
            raise InvalidArgumentError(
                f"partition_assignment_strategy must be a list of names, not {names!r}"
            )
        for name in names:
            check_choice("partition_assignment_strategy", name, tuple(ASSIGNORS))
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidArgumentError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be less than"
                f" session_timeout_ms ({self.session_timeout_ms})"
            )

    def group(self) -> GroupConfig | None:
        """What a member of the group needs; None without a group."""
        if self.group_id is None:
            return None
        return GroupConfig(
            group_id=self.group_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id or f"consumer-{self.group_id}",
            client_rack=self.client_rack,
            assignors=tuple(ASSIGNORS[name] for name in self.partition_assignment_strategy),
            session_timeout=self.session_timeout_ms / 1000,
            heartbeat_interval=self.heartbeat_interval_ms / 1000,
            max_poll_interval=self.max_poll_interval_ms / 1000,
            request_timeout=self.request_timeout_ms / 1000,
            api_timeout=self.default_api_timeout_ms / 1000,
            auto_commit_interval=(
                self.auto_commit_interval_ms / 1000 if self.enable_auto_commit else None
            ),
            offsets_storage=self.offsets_storage,
        )

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
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "max_poll_interval_ms": 1,
    "auto_commit_interval_ms": 1,
}

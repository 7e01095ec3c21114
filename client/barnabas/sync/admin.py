"""The blocking admin client: the methods of `barnabas.Admin`, each waiting for its answer."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack

from barnabas.admin import Admin as AsyncAdmin
from barnabas.admin import (
    AdminOptions,
    BrokerReplicas,
    ClusterDescription,
    ConfigResource,
    NewTopic,
)
from barnabas.admin.events import BrokerEvents
from barnabas.cluster.options import DEFAULT_BOOTSTRAP
from barnabas.errors import BarnabasError
from barnabas.explain import Explanation
from barnabas.messages.configs import ConfigDescription
from barnabas.messages.metadata import TopicMetadata
from barnabas.messages.offsets import ListedOffset
from barnabas.messages.reassignments import OngoingReassignment
from barnabas.messages.topics import TopicResult
from barnabas.runtime import Runtime
from barnabas.sync.blocking import Blocking
from barnabas.topic_partition import TopicPartition


class Admin(Blocking):
    """Takes the options of `barnabas.Admin`.

    Raises `NoBrokerReachableError` within seconds if nobody answers at the addresses.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        super().__init__("Admin")
        self._admin = AsyncAdmin(bootstrap_servers, runtime=runtime, **options)
        self._thread.call(self._admin.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._check_usable()
            self._closed = True
            self._thread.call(self._admin.close())

    def create_topic(
        self,
        topic: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        configs: Mapping[str, str] | None = None,
        assignments: Mapping[int, Sequence[int]] | None = None,
        timeout_ms: int = 30_000,
        validate_only: bool = False,
    ) -> TopicResult:
        """Create a topic and wait until its partitions have leaders."""
        return self._call(
            self._admin.create_topic(
                topic,
                partitions,
                replication_factor,
                configs=configs,
                assignments=assignments,
                timeout_ms=timeout_ms,
                validate_only=validate_only,
            )
        )

    def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> list[TopicResult]:
        """Create several topics; raises the first refusal, once all the others are created."""
        return self._call(
            self._admin.create_topics(topics, timeout_ms=timeout_ms, validate_only=validate_only)
        )

    def delete_topics(self, topics: Iterable[str], *, timeout_ms: int = 30_000) -> None:
        """Delete topics with all their records; raises the first refusal."""
        self._call(self._admin.delete_topics(topics, timeout_ms=timeout_ms))

    def create_partitions(
        self,
        topic: str,
        count: int,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        timeout_ms: int = 30_000,
        validate_only: bool = False,
    ) -> None:
        """Have a topic grow to `count` partitions, and wait until the new ones have leaders."""
        self._call(
            self._admin.create_partitions(
                topic,
                count,
                assignments=assignments,
                timeout_ms=timeout_ms,
                validate_only=validate_only,
            )
        )

    def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None]
    ) -> None:
        """Begin to move partitions to these brokers, the preferred leader first; None cancels."""
        self._call(self._admin.alter_partition_reassignments(reassignments))

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is being reassigned now: of these partitions, or of all."""
        return self._call(self._admin.list_partition_reassignments(partitions))

    def elect_leaders(
        self,
        election_type: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int = 30_000,
    ) -> dict[TopicPartition, BarnabasError | None]:
        """Have "preferred" or "unclean" leaders elected: of these partitions, or where needed."""
        return self._call(
            self._admin.elect_leaders(election_type, partitions, timeout_ms=timeout_ms)
        )

    def list_topics(self) -> list[str]:
        """The names of all topics, in order."""
        return self._call(self._admin.list_topics())

    def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicMetadata]:
        """Partitions, leaders, replicas and ISR of these topics, or of all."""
        return self._call(self._admin.describe_topics(topics))

    def describe_cluster(self) -> ClusterDescription:
        """The live brokers and the controller."""
        return self._call(self._admin.describe_cluster())

    def describe_configs(self, topic: str) -> list[ConfigDescription]:
        """The effective configuration of a topic."""
        return self._call(self._admin.describe_configs(topic))

    def describe_broker_configs(self, broker_id: int) -> list[ConfigDescription]:
        """The effective configuration of one broker."""
        return self._call(self._admin.describe_broker_configs(broker_id))

    def describe_cluster_default_configs(self) -> list[ConfigDescription]:
        """What is set for all brokers."""
        return self._call(self._admin.describe_cluster_default_configs())

    def incremental_alter_configs(
        self,
        resource: ConfigResource,
        changes: Mapping[str, str | None] | None = None,
        *,
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change settings of a topic or of brokers while they run; None deletes an override."""
        self._call(
            self._admin.incremental_alter_configs(
                resource, changes, append=append, subtract=subtract, validate_only=validate_only
            )
        )

    def describe_replicas(self, topics: Iterable[str] = ()) -> list[BrokerReplicas]:
        """What every live broker says of its own replicas."""
        return self._call(self._admin.describe_replicas(topics))

    def describe_events(self, topics: Iterable[str] = ()) -> list[BrokerEvents]:
        """What every live broker remembers: changes of state with their causes."""
        return self._call(self._admin.describe_events(topics))

    def explain(self, topic: str, partition: int) -> Explanation:
        """Why a partition is as it is: its leader, its ISR, its high watermark."""
        return self._call(self._admin.explain(topic, partition))

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset at each timestamp: ms, or LATEST (-1), EARLIEST (-2), MAX_TIMESTAMP (-3)."""
        return self._call(self._admin.list_offsets(timestamps))

    def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The offset after the last record consumers may read, for each partition of a topic."""
        return self._call(self._admin.end_offsets(topic))

"""The admin client: topics, the cluster, configurations, replicas.

Any broker answers most requests, and brokers write to ZooKeeper themselves; what must wait for its
turn among the controller's own events goes to the controller. A request that may have been applied
(the connection broke) is not sent a second time: the caller learns that nobody knows.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, Unpack

from barnabas.admin.config import AdminConfig, AdminOptions
from barnabas.admin.config_resource import ConfigResource, alter_resource
from barnabas.admin.events import BrokerEvents, EventStream, remembered
from barnabas.admin.explaining import view_of
from barnabas.cluster import Cluster
from barnabas.cluster.by_controller import ask_controller, whole_request_refused
from barnabas.cluster.by_leader import list_offsets
from barnabas.cluster.default_runtime import default_runtime
from barnabas.cluster.lifetime import Lifetime
from barnabas.cluster.options import DEFAULT_BOOTSTRAP, check_int
from barnabas.error_code import ErrorCode
from barnabas.errors import BarnabasError, NotControllerError, error_for, raise_for
from barnabas.explain import Explanation, explain
from barnabas.messages.configs import (
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.messages.elections import ElectLeadersRequest, ElectLeadersResponse
from barnabas.messages.metadata import BrokerInfo, MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.messages.offsets import LATEST_TIMESTAMP, ListedOffset
from barnabas.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    PartitionName,
    ReassignPartition,
)
from barnabas.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas.messages.topics import (
    ConfigEntry,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    ReplicaAssignment,
    TopicResult,
)
from barnabas.runtime import Runtime, Service
from barnabas.topic_partition import TopicPartition

# What the network may take on top of the time the broker is given.
_NETWORK_MARGIN = 5.0


@dataclass(frozen=True)
class ClusterDescription:
    """`controller_id` is -1 while there is no controller."""

    cluster_id: str
    controller_id: int
    brokers: list[BrokerInfo]


@dataclass(frozen=True)
class BrokerReplicas:
    """A broker's own replicas, or why it did not tell."""

    broker_id: int
    replicas: list[ReplicaDescription] = field(default_factory=list)
    error: BarnabasError | None = None


class Admin:
    """Looks after topics; options are those of `AdminConfig`, by keyword."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        self._config = AdminConfig.of(options)
        self._cluster_config = self._config.cluster(bootstrap_servers)
        self._given_runtime = runtime
        self._lifetime = Lifetime("Admin", self._start)
        self._timeout = self._config.default_api_timeout_ms / 1000

    async def start(self) -> Self:
        """Find the cluster; `NoBrokerReachableError` within seconds if nobody answers."""
        await self._lifetime.ensure()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._lifetime.end():
            await self._cluster.close()

    # Topics

    async def create_topic(
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
        """Create a topic and wait until its partitions have leaders, at most `timeout_ms`.

        -1 takes the brokers' `num.partitions` and `default.replication.factor`. `assignments`
        names the brokers of each partition instead. Raises what the broker refused:
        `TopicAlreadyExistsError`, `InvalidReplicationFactorError`, `InvalidConfigError`, ...
        """
        new = NewTopic(
            topic,
            partitions,
            replication_factor,
            [ReplicaAssignment(p, list(ids)) for p, ids in (assignments or {}).items()],
            [ConfigEntry(name, str(value)) for name, value in (configs or {}).items()],
        )
        results = await self._create([new], timeout_ms, validate_only)
        return _all_or_raise(results)[0]

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> list[TopicResult]:
        """Create several topics; raises the first refusal, once all the others are created."""
        return _all_or_raise(await self._create(list(topics), timeout_ms, validate_only))

    async def delete_topics(self, topics: Iterable[str], *, timeout_ms: int = 30_000) -> None:
        """Delete topics with their records; raises the first refusal, once the others are gone."""
        _all_or_raise(await self._change(DeleteTopicsRequest(timeout_ms, list(topics)), timeout_ms))

    async def create_partitions(
        self,
        topic: str,
        count: int,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        timeout_ms: int = 30_000,
        validate_only: bool = False,
    ) -> None:
        """Have a topic grow to `count` partitions, and wait until the new ones have leaders.

        `assignments` names the brokers of each new partition. Records stay where they are: those
        of a key may be in another partition from now on. Raises `InvalidPartitionsError`,
        `ReassignmentInProgressError`, `UnknownTopicOrPartitionError`, ...
        """
        check_int("count", count, 1)
        check_int("timeout_ms", timeout_ms, 0)
        given = [ReplicaAssignment(p, list(ids)) for p, ids in (assignments or {}).items()]
        new = NewPartitions(topic, count, given)
        request = CreatePartitionsRequest(timeout_ms, validate_only, [new])
        response: CreatePartitionsResponse = await self._ask_controller(
            request,
            timeout_ms / 1000 + _NETWORK_MARGIN,
            lambda r: any(t.error_code == ErrorCode.NOT_CONTROLLER for t in r.topics),
        )
        _all_or_raise(response.topics)

    # Elections

    async def elect_leaders(
        self,
        election_type: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int = 30_000,
    ) -> dict[TopicPartition, BarnabasError | None]:
        """Have leaders elected: of these partitions, or of all that need it.

        "preferred" hands leadership to the first replica of the assignment, if it is in sync.
        "unclean" gives a partition without a leader any replica that lives, in sync or not:
        acknowledged records may be lost. Returns for each partition None, or why it has no such
        leader: `ElectionNotNeededError`, `PreferredLeaderNotAvailableError`,
        `EligibleLeadersNotAvailableError`, `UnknownTopicOrPartitionError`, `InvalidTopicError`
        while its topic is being deleted. Raises `InvalidRequestError` for another type.
        """
        check_int("timeout_ms", timeout_ms, 0)
        names = [PartitionName(*partition) for partition in partitions or ()]
        request = ElectLeadersRequest(election_type, partitions is None, names, timeout_ms)
        response: ElectLeadersResponse = await self._ask_controller(
            request, timeout_ms / 1000 + _NETWORK_MARGIN
        )
        raise_for(response.error_code, response.error_message or "election")
        return {
            TopicPartition(result.topic, result.partition): error_for(
                result.error_code, result.error_message
            )
            if result.error_code
            else None
            for result in response.partitions
        }

    # Reassignment

    async def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None]
    ) -> None:
        """Begin to move partitions to these brokers, the preferred leader first; None cancels.

        Returns when the controller has taken it up, not when it is done: see
        `list_partition_reassignments`. Raises the first refusal
        (`InvalidReplicaAssignmentError`, `NoReassignmentInProgressError`,
        `UnknownTopicOrPartitionError`), once the others have begun.
        """
        request = AlterPartitionReassignmentsRequest(
            [
                ReassignPartition(*partition, list(replicas or ()), replicas is None)
                for partition, replicas in reassignments.items()
            ]
        )
        response: AlterPartitionReassignmentsResponse = await self._ask_controller(
            request, self._request_timeout
        )
        raise_for(response.error_code, response.error_message or "reassignment")
        for result in response.partitions:
            name = TopicPartition(result.topic, result.partition)
            raise_for(result.error_code, f"{name}: {result.error_message}")

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is being reassigned now: of these partitions, or of all."""
        names = [PartitionName(*partition) for partition in partitions or ()]
        request = ListPartitionReassignmentsRequest(partitions is None, names)
        response: ListPartitionReassignmentsResponse = await self._ask_controller(
            request, self._request_timeout
        )
        raise_for(response.error_code, "list of reassignments")
        return {
            TopicPartition(found.topic, found.partition): found for found in response.partitions
        }

    async def list_topics(self) -> list[str]:
        """The names of all topics, internal ones included, in order."""
        response = await self._metadata(MetadataRequest(all_topics=True))
        return sorted(topic.topic for topic in response.topics)

    async def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicMetadata]:
        """Partitions, leaders, replicas and ISR of these topics, or of all.

        Raises `UnknownTopicOrPartitionError` if one does not exist.
        """
        names = None if topics is None else list(topics)
        request = MetadataRequest(names or [], all_topics=names is None)
        response = await self._metadata(request)
        for topic in response.topics:
            raise_for(topic.error_code, f"topic {topic.topic!r}")
        found = {topic.topic: topic for topic in response.topics}
        return [found[name] for name in (sorted(found) if names is None else names)]

    async def describe_topic(self, topic: str) -> TopicMetadata:
        """`describe_topics` of one."""
        return (await self.describe_topics([topic]))[0]

    # Cluster, configurations, replicas, offsets

    async def describe_cluster(self) -> ClusterDescription:
        """The live brokers and the controller, as the asked broker knows them."""
        response = await self._metadata(MetadataRequest())
        brokers = sorted(response.brokers, key=lambda broker: broker.broker_id)
        return ClusterDescription(response.cluster_id, response.controller_id, brokers)

    async def describe_configs(self, topic: str) -> list[ConfigDescription]:
        """The effective configuration of a topic, with the source of each value."""
        await self._lifetime.ensure()
        return _configs(await self._cluster.ask(DescribeConfigsRequest([topic])))

    async def describe_broker_configs(self, broker_id: int) -> list[ConfigDescription]:
        """The effective configuration of one broker."""
        await self._lifetime.ensure()
        channel = self._cluster.channel(broker_id, Service.ADMIN)
        request = DescribeConfigsRequest(broker=True)
        return _configs(await channel.call(request, self._request_timeout))

    async def describe_cluster_default_configs(self) -> list[ConfigDescription]:
        """What is set for all brokers, by overrides that brokers' own come before."""
        await self._lifetime.ensure()
        return _configs(await self._cluster.ask(DescribeConfigsRequest(cluster_default=True)))

    async def incremental_alter_configs(
        self,
        resource: ConfigResource,
        changes: Mapping[str, str | None] | None = None,
        *,
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change settings of a topic or of brokers while they run; None deletes an override.

        `append` and `subtract` are for lists. All changes are made, or none. Brokers act by them
        within moments of the return. Raises `InvalidConfigError`, `InvalidRequestError`,
        `UnknownTopicOrPartitionError`.
        """
        await self._lifetime.ensure()
        altered = alter_resource(resource, changes or {}, append, subtract)
        request = IncrementalAlterConfigsRequest(validate_only, [altered])
        response: IncrementalAlterConfigsResponse
        if resource.resource_type == "broker" and resource.name:
            channel = self._cluster.channel(int(resource.name), Service.ADMIN)
            response = await channel.call(request, self._request_timeout)
        else:
            response = await self._cluster.ask(request, self._request_timeout)
        for result in response.resources:
            raise_for(result.error_code, result.error_message or str(resource))

    async def describe_replicas(self, topics: Iterable[str] = ()) -> list[BrokerReplicas]:
        """What every live broker says of its own replicas of these topics (none named: of all).

        A broker that does not answer is in the list too, with its error.
        """
        cluster = await self.describe_cluster()
        request = DescribeReplicasRequest(list(topics))
        return await asyncio.gather(
            *(self._replicas_of(broker.broker_id, request) for broker in cluster.brokers)
        )

    async def describe_events(self, topics: Iterable[str] = ()) -> list[BrokerEvents]:
        """What every live broker remembers: changes of state with their causes, oldest first.

        With topics named, only of these and of the brokers themselves. A broker that does not
        answer is in the list too, with its error.
        """
        cluster, named = await self.describe_cluster(), list(topics)
        return await asyncio.gather(
            *(remembered(self._cluster, broker.broker_id, named) for broker in cluster.brokers)
        )

    async def events(
        self, topics: Iterable[str] = (), *, from_beginning: bool = False
    ) -> EventStream:
        """The events of all brokers as they come: `async with await admin.events() as stream`."""
        await self.describe_cluster()
        return EventStream(self._cluster, list(topics), from_beginning)

    async def explain(self, topic: str, partition: int) -> Explanation:
        """Why a partition is as it is: its leader, its ISR, its high watermark.

        Works with brokers missing, and says what could not be asked. Raises
        `UnknownTopicOrPartitionError`.
        """
        response = await self._metadata(MetadataRequest([topic]))
        raise_for(response.topics[0].error_code, f"topic {topic!r}")
        wanted = TopicPartition(topic, partition)
        return explain(await view_of(self._cluster, response, wanted))

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset at each timestamp: ms, or LATEST (-1), EARLIEST (-2), MAX_TIMESTAMP (-3)."""
        await self._lifetime.ensure()
        wanted = {TopicPartition(*tp): timestamp for tp, timestamp in timestamps.items()}
        return await list_offsets(self._cluster, wanted, 0, self._timeout)

    async def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The offset after the last record consumers may read, for each partition of a topic."""
        partitions = (await self.describe_topics([topic]))[0].partitions
        wanted = {TopicPartition(topic, p.partition): LATEST_TIMESTAMP for p in partitions}
        return {tp: found.offset for tp, found in (await self.list_offsets(wanted)).items()}

    async def _start(self) -> None:
        self._cluster = Cluster(self._cluster_config, self._given_runtime or default_runtime())
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            raise

    async def _create(
        self, topics: list[NewTopic], timeout_ms: int, validate_only: bool
    ) -> list[TopicResult]:
        return await self._change(
            CreateTopicsRequest(timeout_ms, validate_only, topics), timeout_ms
        )

    async def _change(self, request: Any, timeout_ms: int) -> list[TopicResult]:
        """A request about topics, again while the asked broker knows no controller."""
        check_int("timeout_ms", timeout_ms, 0)

        def controller_is_missing(response: Any) -> bool:
            return any(topic.error_code == ErrorCode.NOT_CONTROLLER for topic in response.topics)

        timeout = timeout_ms / 1000 + _NETWORK_MARGIN
        response = await self._ask_until(request, timeout, controller_is_missing)
        return list(response.topics)

    async def _ask_until(self, request: Any, timeout: float, again: Callable[[Any], bool]) -> Any:
        await self._lifetime.ensure()
        deadline = self._cluster.clock.monotonic() + self._timeout
        failures = 0
        while True:
            response = await self._cluster.ask(request, timeout)
            if not again(response):
                return response
            failures += 1
            pause = self._cluster.backoff.seconds(failures)
            if self._cluster.clock.monotonic() + pause >= deadline:
                raise NotControllerError("there is no controller now")
            await asyncio.sleep(pause)

    async def _ask_controller(
        self,
        request: Any,
        timeout: float,
        not_controller: Callable[[Any], bool] = whole_request_refused,
    ) -> Any:
        await self._lifetime.ensure()
        return await ask_controller(self._cluster, request, timeout, self._timeout, not_controller)

    async def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        await self._lifetime.ensure()
        return await self._cluster.refresh(request)

    async def _replicas_of(
        self, broker_id: int, request: DescribeReplicasRequest
    ) -> BrokerReplicas:
        try:
            channel = self._cluster.channel(broker_id, Service.ADMIN)
            response: DescribeReplicasResponse = await channel.call(request, _NETWORK_MARGIN)
        except BarnabasError as error:
            return BrokerReplicas(broker_id, error=error)
        return BrokerReplicas(broker_id, response.replicas)

    @property
    def _request_timeout(self) -> float:
        return self._config.request_timeout_ms / 1000


def _all_or_raise(results: list[TopicResult]) -> list[TopicResult]:
    for result in results:
        raise_for(result.error_code, result.error_message or result.topic)
    return results


def _configs(response: DescribeConfigsResponse) -> list[ConfigDescription]:
    (resource,) = response.resources
    raise_for(resource.error_code, resource.error_message or resource.topic)
    return resource.configs

"""The admin client: topics, the cluster, configurations, replicas.

Any broker answers most requests, and brokers write to ZooKeeper themselves; requests that need the
controller's event queue go to the controller. A request that may have been applied (the connection
broke) is not sent a second time: the caller gets `MaybeApplied`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Unpack

from barnabas_common.errors import BarnabasError, raise_for
from barnabas_common.messages.configs import ConfigDescription, DescribeConfigsRequest
from barnabas_common.messages.groups import KAFKA_STORAGE, STORAGES, ListedGroup
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas_common.messages.offsets import LATEST_TIMESTAMP, MAX_TIMESTAMP, ListedOffset
from barnabas_common.messages.reassignments import OngoingReassignment
from barnabas_common.messages.replicas import DescribeReplicasRequest
from barnabas_common.messages.topics import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    TopicResult,
)
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin import (
    config_requests,
    controller_requests,
    group_requests,
    topic_requests,
)
from barnabas.admin.config import AdminConfig, AdminOptions
from barnabas.admin.config_resource import ConfigResource, alter_resource
from barnabas.admin.descriptions import (
    BrokerReplicas,
    ClusterDescription,
    DeletedTopic,
    replicas_of,
)
from barnabas.admin.events import BrokerEvents, EventStream, recorded_events
from barnabas.admin.explaining import view_of
from barnabas.admin.group_explaining import view_of_group
from barnabas.admin.group_requests import GroupDescription
from barnabas.admin.transactions.administration import AdminOfTransactions
from barnabas.cluster.by_leader import list_offsets
from barnabas.cluster.options import (
    DEFAULT_BOOTSTRAP,
    check_bool,
    check_choice,
    check_int,
    check_seconds,
    check_str,
    check_topic,
    checked_names,
    checked_partition,
    checked_partitions,
    checked_timestamps,
)
from barnabas.explain import Explanation, explain
from barnabas.group.explaining import GroupSentence, explain_group
from barnabas.group.offsets import OffsetAndMetadata, checked


class Admin(AdminOfTransactions):
    """Administers a cluster; options are those of `AdminConfig`, by keyword."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        config = AdminConfig.of(options)
        patience = config.default_api_timeout_ms / 1000
        super().__init__(config.cluster(bootstrap_servers), runtime, patience)

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
        """Create a topic and wait until its partitions have leaders and every broker knows it.

        `RequestTimedOutError` after `timeout_ms`: the topic exists, but a leader is still missing.

        -1 takes the brokers' `num.partitions` and `default.replication.factor`. `assignments`
        names the brokers of each partition instead. Raises the broker's refusal:
        `TopicAlreadyExistsError`, `InvalidReplicationFactorError`, `InvalidConfigError`, ...
        """
        new = NewTopic(
            topic,
            partitions,
            replication_factor,
            topic_requests.assigned(assignments),
            topic_requests.configured(configs),
        )
        created = await self.create_topics(
            [new], timeout_ms=timeout_ms, validate_only=validate_only
        )
        return created[0]

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> list[TopicResult]:
        """Create several topics; returns when every broker that can be reached knows them.

        Raises the first refusal, once all the others are created.
        """
        cluster = await self._ready()
        new = topic_requests.new_topics(topics)
        check_bool("validate_only", validate_only)
        request = CreateTopicsRequest(timeout_ms, validate_only, new)
        return await topic_requests.create_topics(cluster, request, self._patience)

    async def delete_topics(
        self, topics: Iterable[str], *, timeout_ms: int = 30_000
    ) -> list[DeletedTopic]:
        """Delete topics with their records; returns when they can be created again.

        If a broker with a replica does not run, the call returns when no reachable broker knows the
        topic, and names the broker; the deletion ends when it is back. Raises the first refusal,
        once the rest is deleted, and `RequestTimedOutError` after `timeout_ms`; the deletion
        continues by itself.
        """
        request = DeleteTopicsRequest(timeout_ms, topic_requests.names(topics))
        return await topic_requests.delete_topics(await self._ready(), request, self._patience)

    async def create_partitions(
        self,
        topic: str,
        count: int,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        timeout_ms: int = 30_000,
        validate_only: bool = False,
    ) -> None:
        """Grow a topic to `count` partitions, and wait until the new ones have leaders.

        `assignments` names the brokers of each new partition. Records stay where they are: new
        records of a key may go to another partition. Raises `InvalidPartitionsError`,
        `ReassignmentInProgressError`, `UnknownTopicOrPartitionError`, ...
        """
        new = NewPartitions(topic, count, topic_requests.assigned(assignments))
        await topic_requests.grow_topic(
            await self._ready(), new, timeout_ms, validate_only, self._patience
        )

    # Elections and reassignments

    async def elect_leaders(
        self,
        election_type: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int = 30_000,
    ) -> dict[TopicPartition, BarnabasError | None]:
        """Elect leaders of these partitions, or of all that need one.

        "preferred" moves leadership to the first replica of the assignment, if it is in sync.
        "unclean" makes any online replica the leader of a partition without one, in sync or not:
        acknowledged records may be lost. Returns for each partition None, or why it has no such
        leader: `ElectionNotNeededError`, `PreferredLeaderNotAvailableError`,
        `EligibleLeadersNotAvailableError`, `UnknownTopicOrPartitionError`, `InvalidTopicError`
        while its topic is being deleted. Raises `InvalidRequestError` for another type.
        """
        return await controller_requests.elect(
            await self._ready(), election_type, partitions, timeout_ms, self._patience
        )

    async def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None]
    ) -> None:
        """Start to move partitions to these brokers, the preferred leader first; None cancels.

        Returns when the controller has accepted it, not when it is done: see
        `list_partition_reassignments`. Raises the first refusal
        (`InvalidReplicaAssignmentError`, `NoReassignmentInProgressError`,
        `UnknownTopicOrPartitionError`), once the others have started.
        """
        await controller_requests.reassign(await self._ready(), reassignments, self._patience)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """The reassignments in progress: of these partitions, or of all."""
        return await controller_requests.ongoing_reassignments(
            await self._ready(), partitions, self._patience
        )

    # The cluster

    async def list_topics(self) -> list[str]:
        """The names of all topics, internal ones included, in order."""
        response = await self._metadata(MetadataRequest(all_topics=True))
        return sorted(topic.topic for topic in response.topics)

    async def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicMetadata]:
        """Partitions, leaders, replicas and ISR of these topics, or of all.

        Raises `UnknownTopicOrPartitionError` if one does not exist.
        """
        named = None if topics is None else topic_requests.names(topics)
        response = await self._metadata(MetadataRequest(named or [], all_topics=named is None))
        for topic in response.topics:
            raise_for(topic.error_code, f"topic {topic.topic!r}")
        found = {topic.topic: topic for topic in response.topics}
        return [found[name] for name in (sorted(found) if named is None else named)]

    async def describe_topic(self, topic: str) -> TopicMetadata:
        """Describe one topic, as `describe_topics` does."""
        return (await self.describe_topics([topic]))[0]

    async def describe_cluster(self) -> ClusterDescription:
        """The registered brokers and the controller, as the asked broker knows them.

        Raises `NotControllerError` if it knows none, as long as there is no controller.
        """
        response = await self._metadata(MetadataRequest())
        brokers = sorted(response.brokers, key=lambda broker: broker.broker_id)
        return ClusterDescription(response.cluster_id, response.controller_id, brokers)

    async def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        return await topic_requests.metadata(await self._ready(), request, self._patience)

    # Configurations

    async def describe_configs(self, topic: str) -> list[ConfigDescription]:
        """The effective configuration of a topic, with the source of each value."""
        check_topic(topic)
        request = DescribeConfigsRequest([topic])
        return await config_requests.describe(await self._ready(), request, self._patience)

    async def describe_broker_configs(self, broker_id: int) -> list[ConfigDescription]:
        """The effective configuration of one broker."""
        check_int("broker_id", broker_id, 0)
        request = DescribeConfigsRequest(broker=True)
        return await config_requests.describe(
            await self._ready(), request, self._patience, broker_id
        )

    async def describe_cluster_default_configs(self) -> list[ConfigDescription]:
        """The settings for all brokers; a broker's own override comes before them."""
        request = DescribeConfigsRequest(cluster_default=True)
        return await config_requests.describe(await self._ready(), request, self._patience)

    async def incremental_alter_configs(
        self,
        resource: ConfigResource,
        changes: Mapping[str, str | None] | None = None,
        *,
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change settings of a topic or of running brokers; None deletes an override.

        `append` and `subtract` are for lists. The change is atomic. When this returns, settings of
        brokers are in force in every broker that can be reached; those of a topic follow shortly.
        Raises `InvalidConfigError`, `InvalidRequestError`,
        `UnknownTopicOrPartitionError`.
        """
        altered = alter_resource(resource, changes, append, subtract)
        check_bool("validate_only", validate_only)
        cluster = await self._ready()
        await config_requests.alter(cluster, resource, altered, validate_only, self._patience)

    # Replicas, events, offsets

    async def describe_replicas(self, topics: Iterable[str] = ()) -> list[BrokerReplicas]:
        """Every registered broker's own replicas of these topics, or of all if none is named.

        A broker that does not answer is in the list too, with its error.
        """
        request = DescribeReplicasRequest(topic_requests.names(topics))
        brokers = (await self.describe_cluster()).brokers
        return await asyncio.gather(
            *(replicas_of(self._cluster, broker.broker_id, request) for broker in brokers)
        )

    async def describe_events(self, topics: Iterable[str] = ()) -> list[BrokerEvents]:
        """The recorded events of every registered broker, oldest first, with their causes.

        If topics are named, only events of these and of the brokers themselves. A broker that does
        not answer is in the list too, with its error.
        """
        named = topic_requests.names(topics)
        brokers = (await self.describe_cluster()).brokers
        return await asyncio.gather(
            *(recorded_events(self._cluster, broker.broker_id, named) for broker in brokers)
        )

    async def events(
        self, topics: Iterable[str] = (), *, from_beginning: bool = False
    ) -> EventStream:
        """The events of all brokers as they occur: `async with await admin.events() as stream`."""
        named = topic_requests.names(topics)
        check_bool("from_beginning", from_beginning)
        await (await self._ready()).refresh(MetadataRequest())
        return EventStream(self._cluster, named, from_beginning)

    async def explain(self, topic: str, partition: int) -> Explanation:
        """Explain the state of a partition: its leader, its ISR, its offsets.

        Works with missing brokers, and names those that could not be asked. Raises
        `UnknownTopicOrPartitionError`.
        """
        cluster = await self._ready()
        wanted = checked_partition((topic, partition))
        response = await cluster.refresh(MetadataRequest([topic]))
        raise_for(response.topics[0].error_code, f"topic {topic!r}")
        return explain(await view_of(cluster, response, wanted))

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset at each timestamp: ms, or LATEST (-1), EARLIEST (-2), MAX_TIMESTAMP (-3)."""
        wanted = checked_timestamps(timestamps, MAX_TIMESTAMP)
        return await list_offsets(await self._ready(), wanted, 0, self._patience)

    async def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """For each partition of a topic, the offset after the last record consumers may read."""
        partitions = (await self.describe_topics([topic]))[0].partitions
        wanted = {TopicPartition(topic, p.partition): LATEST_TIMESTAMP for p in partitions}
        return {tp: found.offset for tp, found in (await self.list_offsets(wanted)).items()}

    # Consumer groups

    async def list_groups(
        self, states: Sequence[str] = (), storage: str = KAFKA_STORAGE
    ) -> list[ListedGroup]:
        """All groups, or those in these states. `storage` "zookeeper": those with offsets there."""
        named = checked_names("states", states)
        check_choice("storage", storage, STORAGES)
        cluster = await self._ready()
        return await group_requests.list_groups(cluster, named, storage, self._patience)

    async def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """State, members and what each reads; state Dead if there is no such group."""
        cluster = await self._ready()
        wanted = list(dict.fromkeys(checked_names("groups", group_ids)))
        described = await asyncio.gather(
            *(group_requests.describe_group(cluster, g, self._patience) for g in wanted)
        )
        return dict(zip(wanted, described, strict=True))

    async def delete_groups(self, group_ids: Iterable[str], storage: str = KAFKA_STORAGE) -> None:
        """Groups without members, and their offsets. Tries all, then raises the first failure."""
        names = checked_names("groups", group_ids)
        check_choice("storage", storage, STORAGES)
        cluster = await self._ready()
        failures: list[BarnabasError] = []
        for group_id in names:
            try:
                await group_requests.delete_group(cluster, group_id, storage, self._patience)
            except BarnabasError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    async def list_group_offsets(
        self, group_id: str, storage: str = KAFKA_STORAGE
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Everything the group has committed, by partition."""
        check_str("group_id", group_id)
        check_choice("storage", storage, STORAGES)
        cluster = await self._ready()
        return await group_requests.group_offsets(cluster, group_id, storage, self._patience)

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        storage: str = KAFKA_STORAGE,
    ) -> None:
        """Set what the group has committed; refused while it has members."""
        check_str("group_id", group_id)
        check_choice("storage", storage, STORAGES)
        new = checked(offsets)
        cluster = await self._ready()
        await group_requests.alter_group_offsets(cluster, group_id, new, storage, self._patience)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> None:
        """Forget what the group has committed for partitions that no member reads."""
        check_str("group_id", group_id)
        wanted = checked_partitions(partitions)
        cluster = await self._ready()
        await group_requests.delete_group_offsets(cluster, group_id, wanted, self._patience)

    async def explain_group(self, group_id: str, seconds: float = 2.0) -> list[GroupSentence]:
        """Why it rebalanced, which member reads what, why it lags; watches for some seconds.

        Raises `GroupIdNotFoundError`.
        """
        check_str("group_id", group_id)
        check_seconds("seconds", seconds)
        cluster = await self._ready()
        return explain_group(await view_of_group(cluster, group_id, seconds, self._patience))

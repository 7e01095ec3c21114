"""What brokers tell: of the cluster, of topics, of their replicas and of what they have seen."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.admin.events import NETWORK_MARGIN, BrokerEvents, remembered
from barnabas.cluster import Cluster
from barnabas.errors import BarnabasError, raise_for
from barnabas.messages.metadata import BrokerInfo, MetadataRequest, TopicMetadata
from barnabas.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas.runtime import Service


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


async def describe_cluster(cluster: Cluster) -> ClusterDescription:
    """The live brokers and the controller, as the asked broker knows them."""
    response = await cluster.refresh(MetadataRequest())
    brokers = sorted(response.brokers, key=lambda broker: broker.broker_id)
    return ClusterDescription(response.cluster_id, response.controller_id, brokers)


async def list_topics(cluster: Cluster) -> list[str]:
    """All names, in order."""
    response = await cluster.refresh(MetadataRequest(all_topics=True))
    return sorted(topic.topic for topic in response.topics)


async def describe_topics(cluster: Cluster, topics: Sequence[str] | None) -> list[TopicMetadata]:
    """These, in their order, or all by name; raises if one does not exist."""
    response = await cluster.refresh(MetadataRequest(list(topics or ()), all_topics=topics is None))
    for topic in response.topics:
        raise_for(topic.error_code, f"topic {topic.topic!r}")
    found = {topic.topic: topic for topic in response.topics}
    return [found[name] for name in (sorted(found) if topics is None else topics)]


async def describe_replicas(cluster: Cluster, topics: Sequence[str]) -> list[BrokerReplicas]:
    """Of every live broker, also of one that does not answer."""
    request = DescribeReplicasRequest(list(topics))
    live = (await describe_cluster(cluster)).brokers
    return await asyncio.gather(
        *(_replicas_of(cluster, broker.broker_id, request) for broker in live)
    )


async def describe_events(cluster: Cluster, topics: Sequence[str]) -> list[BrokerEvents]:
    """Of every live broker, also of one that does not answer."""
    live = (await describe_cluster(cluster)).brokers
    return await asyncio.gather(*(remembered(cluster, broker.broker_id, topics) for broker in live))


async def _replicas_of(
    cluster: Cluster, broker_id: int, request: DescribeReplicasRequest
) -> BrokerReplicas:
    try:
        channel = cluster.channel(broker_id, Service.ADMIN)
        response: DescribeReplicasResponse = await channel.call(request, NETWORK_MARGIN)
    except BarnabasError as error:
        return BrokerReplicas(broker_id, error=error)
    return BrokerReplicas(broker_id, response.replicas)

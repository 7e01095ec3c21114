"""The reports of brokers about the cluster and about their own replicas."""

from dataclasses import dataclass, field

from barnabas_common.errors import BarnabasError
from barnabas_common.messages.metadata import BrokerInfo
from barnabas_common.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas_common.runtime import Service

from barnabas.admin.events import NETWORK_MARGIN
from barnabas.cluster import Cluster


@dataclass(frozen=True)
class ClusterDescription:
    """The registered brokers; `controller_id` is -1 while there is no controller."""

    cluster_id: str
    controller_id: int
    brokers: list[BrokerInfo]


@dataclass(frozen=True)
class BrokerReplicas:
    """A broker's own replicas, or the error if it did not answer."""

    broker_id: int
    replicas: list[ReplicaDescription] = field(default_factory=list)
    error: BarnabasError | None = None


@dataclass(frozen=True)
class DeletedTopic:
    """A deleted topic. Its name is not free until each of the brokers `waits_for` has come back and
    deleted its replica."""

    topic: str
    waits_for: tuple[int, ...] = ()


async def replicas_of(
    cluster: Cluster, broker_id: int, request: DescribeReplicasRequest
) -> BrokerReplicas:
    """Ask one broker; a failure is part of the result."""
    try:
        channel = cluster.channel(broker_id, Service.ADMIN)
        response: DescribeReplicasResponse = await channel.call(request, NETWORK_MARGIN)
    except BarnabasError as error:
        return BrokerReplicas(broker_id, error=error)
    return BrokerReplicas(broker_id, response.replicas)

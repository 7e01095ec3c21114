"""Reading and changing the settings of topics and of brokers.

A broker's own are asked of that broker, the others of any.
"""

from barnabas.admin.config_resource import ConfigResource
from barnabas.cluster import Cluster
from barnabas.errors import BrokerNotAvailableError, LeaderNotAvailableError, raise_for
from barnabas.messages.configs import (
    AlterConfigResource,
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.runtime import Channel, Service


async def describe(
    cluster: Cluster, request: DescribeConfigsRequest, broker_id: int | None = None
) -> list[ConfigDescription]:
    """The settings of the one resource that the request names."""
    response: DescribeConfigsResponse
    if broker_id is None:
        response = await cluster.ask(request)
    else:
        channel = _channel(cluster, broker_id)
        response = await channel.call(request, cluster.request_timeout)
    (resource,) = response.resources
    raise_for(resource.error_code, resource.error_message or resource.topic)
    return resource.configs


async def alter(
    cluster: Cluster, resource: ConfigResource, altered: AlterConfigResource, validate_only: bool
) -> None:
    """Make all changes, or none; raises the refusal."""
    request = IncrementalAlterConfigsRequest(validate_only, [altered])
    response: IncrementalAlterConfigsResponse
    if resource.resource_type == "broker" and resource.name:
        channel = _channel(cluster, int(resource.name))
        response = await channel.call(request, cluster.request_timeout)
    else:
        response = await cluster.ask(request, cluster.request_timeout)
    for result in response.resources:
        raise_for(result.error_code, result.error_message or str(resource))


def _channel(cluster: Cluster, broker_id: int) -> Channel:
    """To the broker whose settings are meant. Raises `BrokerNotAvailableError`."""
    try:
        return cluster.channel(broker_id, Service.ADMIN)
    except LeaderNotAvailableError:
        living = ", ".join(map(str, sorted(cluster.metadata.brokers)))
        message = f"there is no broker {broker_id}; those that are there: {living}"
        raise BrokerNotAvailableError(message) from None

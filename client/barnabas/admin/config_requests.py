"""Reading and changing the settings of topics and of brokers.

A broker's own are asked of that broker, the others of any.
"""

from barnabas.admin.config_resource import ConfigResource
from barnabas.cluster import Cluster
from barnabas.errors import raise_for
from barnabas.messages.configs import (
    AlterConfigResource,
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.runtime import Service


async def describe(
    cluster: Cluster, request: DescribeConfigsRequest, broker_id: int | None = None
) -> list[ConfigDescription]:
    """The settings of the one resource that the request names."""
    response: DescribeConfigsResponse
    if broker_id is None:
        response = await cluster.ask(request)
    else:
        channel = cluster.channel(broker_id, Service.ADMIN)
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
        channel = cluster.channel(int(resource.name), Service.ADMIN)
        response = await channel.call(request, cluster.request_timeout)
    else:
        response = await cluster.ask(request, cluster.request_timeout)
    for result in response.resources:
        raise_for(result.error_code, result.error_message or str(resource))

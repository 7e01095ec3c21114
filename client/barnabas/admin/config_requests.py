"""Reading and changing the settings of topics and of brokers.

Requests about one broker's settings go to that broker, the others to any.
"""

from barnabas_common.errors import BrokerNotAvailableError, LeaderNotAvailableError, raise_for
from barnabas_common.messages.configs import (
    AlterConfigResource,
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas_common.runtime import Channel, Service

from barnabas.admin.config_resource import ConfigResource
from barnabas.admin.visibility import wait_until_in_force
from barnabas.cluster import Cluster


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
    """Make the changes, atomically, and wait until they are in force; raises the refusal."""
    request = IncrementalAlterConfigsRequest(validate_only, [altered])
    response: IncrementalAlterConfigsResponse
    if resource.resource_type == "broker" and resource.name:
        channel = _channel(cluster, int(resource.name))
        response = await channel.call(request, cluster.request_timeout)
    else:
        response = await cluster.ask(request, cluster.request_timeout)
    for result in response.resources:
        raise_for(result.error_code, result.error_message or str(resource))
    if resource.resource_type == "broker" and not validate_only:
        await wait_until_in_force(cluster, resource, altered)


def _channel(cluster: Cluster, broker_id: int) -> Channel:
    """The channel to the broker with these settings. Raises `BrokerNotAvailableError`."""
    try:
        return cluster.channel(broker_id, Service.ADMIN)
    except LeaderNotAvailableError:
        registered = ", ".join(map(str, sorted(cluster.metadata.brokers)))
        message = f"broker {broker_id} is not registered; registered brokers: {registered}"
        raise BrokerNotAvailableError(message) from None

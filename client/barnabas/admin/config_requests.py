"""Reading and changing the settings of topics and of brokers.

Requests about one broker's settings go to that broker, the others to any.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas_common.errors import BrokerNotAvailableError, LeaderNotAvailableError, raise_for
from barnabas_common.errors.error_code import ErrorCode
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

R = TypeVar("R", DescribeConfigsResponse, IncrementalAlterConfigsResponse)


async def describe(
    cluster: Cluster,
    request: DescribeConfigsRequest,
    patience: float,
    broker_id: int | None = None,
) -> list[ConfigDescription]:
    """The settings of the one resource that the request names."""

    async def send(deadline: float) -> DescribeConfigsResponse:
        if broker_id is None:
            return await cluster.ask(request, deadline=deadline)  # type: ignore[no-any-return]
        channel, seconds = _channel(cluster, broker_id), cluster.request_time(deadline)
        return await channel.call(request, seconds)  # type: ignore[no-any-return]

    response = await _answer_with_session(cluster, send, patience)
    (resource,) = response.resources
    raise_for(resource.error_code, resource.error_message or resource.topic)
    return resource.configs


async def alter(
    cluster: Cluster,
    resource: ConfigResource,
    altered: AlterConfigResource,
    validate_only: bool,
    patience: float,
) -> None:
    """Make the changes, atomically, and wait until they are in force; raises the refusal."""
    request = IncrementalAlterConfigsRequest(validate_only, [altered])

    async def send(deadline: float) -> IncrementalAlterConfigsResponse:
        seconds = cluster.request_time(deadline)
        if resource.resource_type == "broker" and resource.name:
            channel = _channel(cluster, int(resource.name))
            return await channel.call(request, seconds)  # type: ignore[no-any-return]
        return await cluster.ask(request, seconds)  # type: ignore[no-any-return]

    response = await _answer_with_session(cluster, send, patience)
    for result in response.resources:
        raise_for(result.error_code, result.error_message or str(resource))
    if resource.resource_type == "broker" and not validate_only:
        await wait_until_in_force(cluster, resource, altered)


async def _answer_with_session(
    cluster: Cluster, send: Callable[[float], Awaitable[R]], patience: float
) -> R:
    """The answer of a broker with a ZooKeeper session, if one comes within `patience` s.

    A change may be made twice: each operation has the same result then (KIP-339).
    """
    deadline = cluster.clock.monotonic() + patience
    failures = 0
    while True:
        response = await send(deadline)
        codes = [resource.error_code for resource in response.resources]
        if ErrorCode.NETWORK_EXCEPTION not in codes:
            return response
        failures += 1
        pause = cluster.backoff.seconds(failures)
        if cluster.clock.monotonic() + pause >= deadline:
            return response
        await asyncio.sleep(pause)


def _channel(cluster: Cluster, broker_id: int) -> Channel:
    """The channel to the broker with these settings. Raises `BrokerNotAvailableError`."""
    try:
        return cluster.channel(broker_id, Service.ADMIN)
    except LeaderNotAvailableError:
        registered = ", ".join(map(str, sorted(cluster.metadata.brokers)))
        message = f"broker {broker_id} is not registered; registered brokers: {registered}"
        raise BrokerNotAvailableError(message) from None

"""Waiting until every broker knows of a change: brokers learn of topics one by one.

A client then finds what it has just created, grown, altered or deleted, whichever broker it asks
next. Brokers that cannot be reached are not waited for. The others are waited for only
`MOST_SECONDS`, because a broker that the controller cannot reach does not learn of the change.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from barnabas_common.errors import BarnabasError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.configs import (
    AlterConfig,
    AlterConfigResource,
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from barnabas_common.messages.metadata import MetadataRequest, TopicMetadata
from barnabas_common.runtime import Message, Service

from barnabas.admin.config_resource import ConfigResource
from barnabas.cluster import Cluster

# How long one broker may lag behind the controller before it is no longer waited for.
MOST_SECONDS = 10.0
_POLL_SECONDS = 0.02
# The sources of a setting, as brokers name them.
_OWN, _ALL = "broker-dynamic", "cluster-default"

Known = Callable[[TopicMetadata], bool]


async def wait_until_known(
    cluster: Cluster, topics: Collection[str], known: Known, timeout: float
) -> None:
    """Wait until the answer of every broker about these topics is `known`, at most `timeout` s."""
    if topics:
        request = MetadataRequest(list(topics))
        await _wait(cluster, request, lambda answer: all(map(known, answer.topics)), timeout)


async def wait_until_in_force(
    cluster: Cluster, resource: ConfigResource, altered: AlterConfigResource
) -> None:
    """Wait until the settings of a broker, or of all brokers, are what they were altered to."""
    own = int(resource.name) if resource.name else None

    def in_force(answer: DescribeConfigsResponse) -> bool:
        found = {described.name: described for described in answer.resources[0].configs}
        return all(
            change.name not in found or _is_in_force(change, found[change.name], own is not None)
            for change in altered.changes
        )

    await _wait(cluster, DescribeConfigsRequest(broker=True), in_force, MOST_SECONDS, own)


def _is_in_force(change: AlterConfig, described: ConfigDescription, own: bool) -> bool:
    source = _OWN if own else _ALL
    if change.operation == "delete":
        return described.source != source
    if change.operation != "set" or (not own and described.source == _OWN):
        return True
    return described.source == source and described.value == change.value.strip()


async def _wait(
    cluster: Cluster,
    request: Message,
    known: Callable[[Any], bool],
    timeout: float,
    only: int | None = None,
) -> None:
    """Wait for every broker, or for `only` this one."""
    try:
        async with asyncio.timeout(min(timeout, MOST_SECONDS)):
            brokers = [b.broker_id for b in (await cluster.refresh(MetadataRequest())).brokers]
            waited_for = brokers if only is None else [only]
            await asyncio.gather(*(_wait_for(cluster, b, request, known) for b in waited_for))
            if isinstance(request, MetadataRequest):
                await cluster.refresh(request)
    except (BarnabasError, TimeoutError):
        return  # the change itself has been made


async def _wait_for(
    cluster: Cluster, broker_id: int, request: Message, known: Callable[[Any], bool]
) -> None:
    while True:
        try:
            channel = cluster.channel(broker_id, Service.ADMIN)
            answer = await channel.call(request, cluster.time_for(request, None))
        except BarnabasError:
            return
        if known(answer):
            return
        await asyncio.sleep(_POLL_SECONDS)


def has_partitions(counts: dict[str, int]) -> Known:
    """The test that a topic has at least the number of partitions in `counts`."""
    return lambda topic: not topic.error_code and len(topic.partitions) >= counts[topic.topic]


def is_gone(topic: TopicMetadata) -> bool:
    """Whether the broker that answered no longer knows the topic."""
    return topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

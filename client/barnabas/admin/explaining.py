"""Asking everybody about one partition, to explain it."""

import asyncio

from barnabas.admin.events import BrokerEvents, remembered
from barnabas.cluster import Cluster
from barnabas.errors import BarnabasError, UnknownTopicOrPartitionError
from barnabas.explain import PartitionView
from barnabas.messages.metadata import MetadataResponse, PartitionMetadata
from barnabas.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas.runtime import Service
from barnabas.topic_partition import TopicPartition

TIMEOUT = 3.0


async def view_of(
    cluster: Cluster, metadata: MetadataResponse, topic_partition: TopicPartition
) -> PartitionView:
    """What the live brokers say now; those that do not answer in time are noted as silent.

    Raises `UnknownTopicOrPartitionError` if the topic has no such partition.
    """
    live = sorted(broker.broker_id for broker in metadata.brokers)
    answers = await asyncio.gather(*(_ask(cluster, broker, topic_partition) for broker in live))
    events = [event for answer, _ in answers for event in answer.events]
    events.sort(key=lambda event: (event.time_ms, event.broker_id, event.sequence))
    return PartitionView(
        topic_partition,
        _partition(metadata, topic_partition),
        metadata.controller_id,
        live,
        {answer.broker_id: replica for answer, replica in answers if replica is not None},
        events,
        {a.broker_id: str(a.error) for a, _ in answers if a.error is not None},
        {a.broker_id: a.forgotten_ms for a, _ in answers if a.forgotten_ms},
    )


def _partition(metadata: MetadataResponse, wanted: TopicPartition) -> PartitionMetadata:
    for topic in metadata.topics:
        for partition in topic.partitions:
            if (topic.topic, partition.partition) == wanted:
                return partition
    raise UnknownTopicOrPartitionError(f"there is no partition {wanted}")


async def _ask(
    cluster: Cluster, broker_id: int, wanted: TopicPartition
) -> tuple[BrokerEvents, ReplicaDescription | None]:
    try:
        async with asyncio.timeout(TIMEOUT):
            channel = cluster.channel(broker_id, Service.ADMIN)
            request = DescribeReplicasRequest([wanted.topic])
            answer: DescribeReplicasResponse = await channel.call(request, TIMEOUT)
            events = await remembered(cluster, broker_id, [wanted.topic])
    except TimeoutError:
        late = BarnabasError(f"no answer within {TIMEOUT:g} s")
        return BrokerEvents(broker_id, error=late), None
    except BarnabasError as error:
        return BrokerEvents(broker_id, error=error), None
    found = [r for r in answer.replicas if (r.topic, r.partition) == wanted]
    return events, found[0] if found else None

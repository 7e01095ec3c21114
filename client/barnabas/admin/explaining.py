"""Asking all brokers about one partition, to explain it."""

import asyncio

from barnabas_common.errors import BarnabasError, UnknownTopicOrPartitionError
from barnabas_common.events import in_order
from barnabas_common.messages.metadata import MetadataResponse, PartitionMetadata
from barnabas_common.messages.replicas import DescribeReplicasRequest, ReplicaDescription
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.descriptions import replicas_of
from barnabas.admin.events import BrokerEvents, recorded_events
from barnabas.admin.transactions.explaining import with_open_transactions
from barnabas.cluster import Cluster
from barnabas.explain import PartitionView

TIMEOUT = 3.0


async def view_of(
    cluster: Cluster, metadata: MetadataResponse, topic_partition: TopicPartition
) -> PartitionView:
    """The answers of the registered brokers now; those that do not answer in time are noted.

    Raises `UnknownTopicOrPartitionError` if the topic has no such partition.
    """
    live = sorted(broker.broker_id for broker in metadata.brokers)
    answers = await asyncio.gather(*(_ask(cluster, broker, topic_partition) for broker in live))
    events = in_order(event for answer, _ in answers for event in answer.events)
    view = PartitionView(
        topic_partition,
        _partition(metadata, topic_partition),
        metadata.controller_id,
        live,
        {answer.broker_id: replica for answer, replica in answers if replica is not None},
        events,
        {a.broker_id: str(a.error) for a, _ in answers if a.error is not None},
        {a.broker_id: a.forgotten_ms for a, _ in answers if a.forgotten_ms},
    )
    return await with_open_transactions(cluster, view)


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
            request = DescribeReplicasRequest([wanted.topic])
            answer = await replicas_of(cluster, broker_id, request)
            if answer.error is not None:
                return BrokerEvents(broker_id, error=answer.error), None
            events = await recorded_events(cluster, broker_id, [wanted.topic])
    except TimeoutError:
        late = BarnabasError(f"no answer within {TIMEOUT:g} s")
        return BrokerEvents(broker_id, error=late), None
    found = [r for r in answer.replicas if (r.topic, r.partition) == wanted]
    return events, found[0] if found else None

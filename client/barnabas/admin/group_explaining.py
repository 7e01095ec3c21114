"""Asking brokers about one group, to explain it."""

import asyncio

from barnabas_common.errors import GroupIdNotFoundError
from barnabas_common.events import in_order
from barnabas_common.messages.groups import KAFKA_STORAGE
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.offsets import LATEST_TIMESTAMP
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.events import recorded_events
from barnabas.admin.group_requests import describe_group, group_offsets
from barnabas.cluster import Cluster
from barnabas.cluster.by_leader import list_offsets
from barnabas.group.explaining import GroupView, Progress, Reader


async def view_of_group(
    cluster: Cluster, group_id: str, seconds: float, timeout: float
) -> GroupView:
    """Looks twice, `seconds` apart. Raises `GroupIdNotFoundError`."""
    before = await _progress(cluster, group_id, [], timeout)
    described = await describe_group(cluster, group_id, timeout)
    if described.state == "Dead" and not before.committed:
        raise GroupIdNotFoundError(f"there is no group {group_id!r}")
    read = [tp for member in described.members for tp in member.assignment]
    before = await _progress(cluster, group_id, read, timeout)
    await asyncio.sleep(seconds)
    described = await describe_group(cluster, group_id, timeout)
    readers = [Reader(m.member_id, m.client_id, m.assignment) for m in described.members]
    read = sorted({*read, *(tp for reader in readers for tp in reader.partitions)})
    now = await _progress(cluster, group_id, read, timeout)
    metadata = await cluster.refresh(MetadataRequest())
    answers = await asyncio.gather(
        *(recorded_events(cluster, broker.broker_id, []) for broker in metadata.brokers)
    )
    events = in_order(event for answer in answers for event in answer.events)
    known = [tp for tp in {*now.committed, *read} if cluster.metadata.partition(tp) is not None]
    return GroupView(
        group_id,
        described.state,
        described.assignor,
        readers,
        before,
        now,
        seconds,
        events,
        [tp for tp in known if cluster.metadata.leader(tp) is None],
        {a.broker_id: str(a.error) for a in answers if a.error is not None},
        described.awaiting,
    )


async def _progress(
    cluster: Cluster, group_id: str, read: list[TopicPartition], timeout: float
) -> Progress:
    committed = await group_offsets(cluster, group_id, KAFKA_STORAGE, timeout)
    wanted = {*committed, *read}
    await cluster.refresh(MetadataRequest(sorted({tp.topic for tp in wanted})))
    led = [tp for tp in sorted(wanted) if cluster.metadata.leader(tp) is not None]
    found = await list_offsets(cluster, dict.fromkeys(led, LATEST_TIMESTAMP), 0, timeout)
    return Progress(
        {tp: at.offset for tp, at in committed.items()},
        {tp: answer.offset for tp, answer in found.items()},
    )

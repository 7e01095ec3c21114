"""Where the logs end that a group reads."""

from collections.abc import Iterable

from barnabas import Admin
from barnabas_common.messages.offsets import LATEST_TIMESTAMP
from barnabas_common.topic_partition import TopicPartition


async def log_ends(
    admin: Admin, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int | None]:
    """The log end offsets of the partitions that exist; None while one has no leader.

    A group may have committed offsets of partitions that do not exist any more.
    """
    wanted = set(partitions)
    leaders = {
        tp: partition.leader_id
        for topic in (await admin.describe_topics() if wanted else ())
        for partition in topic.partitions
        if (tp := TopicPartition(topic.topic, partition.partition)) in wanted
    }
    led = [tp for tp, leader in leaders.items() if leader >= 0]
    found = await admin.list_offsets(dict.fromkeys(led, LATEST_TIMESTAMP))
    return {tp: found[tp].offset if tp in found else None for tp in leaders}

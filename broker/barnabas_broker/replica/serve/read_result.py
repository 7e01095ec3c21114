"""The answer to a fetch that is refused, for followers and consumers alike."""

from barnabas_common.errors import KafkaError
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.partition.partitions import Partitions


def refused_fetch(
    key: TopicPartition, error: KafkaError, partitions: Partitions
) -> FetchedPartition:
    """Answer for a partition that cannot be read; names the leader if that is the reason."""
    hint = partitions.leader_hint(key, error.code)
    return FetchedPartition(
        *key,
        error_code=error.code,
        current_leader_id=hint.leader_id,
        current_leader_epoch=hint.leader_epoch,
    )

"""What a fetch is answered: shared by the paths of followers and consumers."""

from barnabas.error_code import ErrorCode
from barnabas.errors import KafkaError
from barnabas.messages.fetch import FetchedPartition
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.partitions import LeaderHint, Partitions

# The errors that mean "ask somebody else", with which the leader is named (KIP-951).
LEADER_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def refused_fetch(
    key: TopicPartition, error: KafkaError, partitions: Partitions
) -> FetchedPartition:
    """A partition that cannot be read, and who leads it if that is the reason."""
    hint = partitions.leader_hint(key) if error.code in LEADER_ELSEWHERE else LeaderHint()
    return FetchedPartition(
        *key,
        error_code=error.code,
        current_leader_id=hint.leader_id,
        current_leader_epoch=hint.leader_epoch,
    )

"""The partitions that this broker hosts, and the leaders of those it does not lead."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas_common.errors import (
    InconsistentTopicIdError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.sentinels import NO_EPOCH, NO_LEADER
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.topic_identity import same_topic

_LEADER_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class LeaderHint(NamedTuple):
    """The leader as far as this broker knows it; -1, -1 if it does not."""

    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH


class Partitions:
    """A mapping that keeps the order in which the partitions were added."""

    def __init__(self, metadata_cache: MetadataCache) -> None:
        self._metadata_cache = metadata_cache
        self._hosted: dict[TopicPartition, Partition] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._hosted.values()))

    def __len__(self) -> int:
        return len(self._hosted)

    def get(self, key: TopicPartition) -> Partition | None:
        return self._hosted.get(key)

    def add(self, partition: Partition) -> None:
        self._hosted[partition.topic_partition] = partition

    def remove(self, key: TopicPartition) -> None:
        self._hosted.pop(key, None)

    def hosted(self, key: TopicPartition, topic_id: str = "") -> Partition:
        """Return the partition, if it is hosted here, for a request with that topic id.

        Raises:
            InconsistentTopicIdError: the log here is of another topic of that name.
            NotLeaderOrFollowerError: other brokers host it.
            UnknownTopicOrPartitionError: the controller has not sent it to this broker.
        """
        partition = self._hosted.get(key)
        if partition is not None:
            if topic_id and not same_topic(partition.topic_id, topic_id):
                raise InconsistentTopicIdError(
                    f"{key}: the log here is of topic id {partition.topic_id}, not {topic_id}"
                )
            return partition
        if self._metadata_cache.partition(*key) is not None:
            raise NotLeaderOrFollowerError(f"{key} has no replica on this broker")
        raise UnknownTopicOrPartitionError(f"{key} is not known on this broker")

    def leader_hint(self, key: TopicPartition, error_code: int) -> LeaderHint:
        """Name the leader to a client that must ask another broker after this error (KIP-951).

        It is the newer of what the replica and the metadata cache have.
        """
        hints = [LeaderHint()]
        if error_code in _LEADER_ELSEWHERE:
            hosted = self._hosted.get(key)
            cached = self._metadata_cache.partition(*key)
            if hosted is not None:
                hints.append(LeaderHint(hosted.leader_id, hosted.leader_epoch))
            if cached is not None:
                hints.append(LeaderHint(cached.leader, cached.leader_epoch))
        return max(hints, key=lambda hint: hint.leader_epoch)

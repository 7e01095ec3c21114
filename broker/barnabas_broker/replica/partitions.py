"""The partitions this broker hosts, and who leads those it does not lead."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.errors import NotLeaderOrFollowerError, UnknownTopicOrPartitionError
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.partition import Partition


class LeaderHint(NamedTuple):
    """Who leads, as far as is known here; -1, -1 if it is not."""

    leader_id: int = -1
    leader_epoch: int = -1


class Partitions:
    """A mapping in the order the partitions came here."""

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

    def hosted(self, key: TopicPartition) -> Partition:
        """The partition, if it is hosted here.

        Raises:
            NotLeaderOrFollowerError: it exists, but elsewhere.
            UnknownTopicOrPartitionError: nobody has told this broker of it.
        """
        partition = self._hosted.get(key)
        if partition is not None:
            return partition
        if self._metadata_cache.partition(*key) is not None:
            raise NotLeaderOrFollowerError(f"{key} has no replica on this broker")
        raise UnknownTopicOrPartitionError(f"{key} is not known on this broker")

    def leader_hint(self, key: TopicPartition) -> LeaderHint:
        """The newer of what the replica and the metadata cache know, for a refused client."""
        hosted = self._hosted.get(key)
        told = self._metadata_cache.partition(*key)
        hints = [LeaderHint()]
        if hosted is not None:
            hints.append(LeaderHint(hosted.leader_id, hosted.leader_epoch))
        if told is not None:
            hints.append(LeaderHint(told.leader, told.leader_epoch))
        return max(hints, key=lambda hint: hint.leader_epoch)

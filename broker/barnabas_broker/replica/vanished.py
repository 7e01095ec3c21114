"""Replicas that this broker has had and has no longer, although they are assigned to it.

The checks of topic ids keep late requests from removing such a replica. If one vanishes
nevertheless, the broker registers again as one that has lost records, so that elections pass it
over. An empty log must not replace the replica while it is in the ISR, exactly as for a lost
folder. Once the replica has left the ISR, the broker asks for the role again.
"""

from collections.abc import Iterable

from barnabas_common.messages.control import LeaderAndIsrPartition, UpdateMetadataPartition
from barnabas_common.messages.sentinels import LEADER_DURING_DELETE
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.partition.partitions import Partitions


class VanishedReplicas:
    """Remembers the topic id of each role that was taken since this broker started."""

    def __init__(self, broker_id: int, cache: MetadataCache, partitions: Partitions) -> None:
        self._broker_id = broker_id
        self._cache = cache
        self._partitions = partitions
        self._taken: dict[TopicPartition, str] = {}

    def role_taken(self, key: TopicPartition, topic_id: str) -> None:
        """Note that this broker hosts the partition."""
        self._taken[key] = topic_id

    def removed(self, key: TopicPartition) -> bool:
        """Note that a request removed the replica; True if the replica is still in the ISR.

        It has vanished only if it is still assigned to this broker.
        """
        state = self._cache.partition(*key)
        if state is None or not is_assigned(self._broker_id, state, self._taken.get(key)):
            self._taken.pop(key, None)
            return False
        return self._broker_id in state.in_sync_replicas

    def must_not_be_empty(self, state: LeaderAndIsrPartition) -> bool:
        """Whether the role has a vanished replica in the ISR, where its log must not be empty."""
        key = TopicPartition(state.topic, state.partition)
        return (
            not state.is_new
            and self._broker_id in state.in_sync_replicas
            and bool(state.topic_id)
            and self._taken.get(key) == state.topic_id
        )

    def take_free(self, states: Iterable[UpdateMetadataPartition]) -> list[TopicPartition]:
        """Return, once each, the vanished replicas that have left the ISR."""
        free = []
        for state in states:
            key = TopicPartition(state.topic, state.partition)
            if key not in self._taken or self._partitions.get(key) is not None:
                continue
            if not is_assigned(self._broker_id, state, self._taken[key]):
                del self._taken[key]
            elif self._broker_id not in state.in_sync_replicas:
                del self._taken[key]
                free.append(key)
        return free


def is_assigned(broker_id: int, state: UpdateMetadataPartition, topic_id: str | None) -> bool:
    """Whether metadata assigns a replica of that topic to the broker, and keeps the topic."""
    return (
        bool(topic_id)
        and state.topic_id == topic_id
        and state.leader != LEADER_DURING_DELETE
        and broker_id in state.replicas
    )

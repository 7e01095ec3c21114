"""Replicas here that the controller assigns to other brokers, and no order came to delete them.

A reassignment does not wait for the brokers it leaves: one that was dead when it ended, or whose
StopReplica died with the controller, keeps its replica. It would fetch from a leader that refuses
it, or believe for ever that it leads. Kafka knows strays only since its brokers can be led by a
KRaft controller, whose first LeaderAndIsr is complete (KAFKA-15605); with ZooKeeper they go
unnoticed. Here UpdateMetadata tells: it names the replicas of every partition.

The log stays, as in Kafka: to delete what somebody may need is for people.
"""

import math
from collections.abc import Callable, Iterable

from barnabas.messages.control import UpdateMetadataPartition
from barnabas.topic_partition import TopicPartition

from barnabas_broker.log.log_manager import LogManager
from barnabas_broker.replica.metadata_cache import LEADER_DURING_DELETE, MetadataCache
from barnabas_broker.replica.partitions import Partitions

# StopReplica follows the news that a replica is no longer assigned within milliseconds.
GRACE_SECONDS = 10.0
INTERVAL_SECONDS = 5.0


def is_assigned_elsewhere(
    broker_id: int, told: UpdateMetadataPartition | None, leader_epoch: int
) -> bool:
    """Whether metadata that are no older than the role here name other brokers alone.

    `leader_epoch` is that of the replica's role, -1 without one. Every change of an assignment
    raises it, so that news of a role that was given since cannot be overlooked.
    """
    return (
        told is not None
        and told.leader != LEADER_DURING_DELETE
        and broker_id not in told.replicas
        and leader_epoch <= told.leader_epoch
    )


class Strays:
    """`note` what an UpdateMetadata names; `due` are those that were strays for long enough."""

    def __init__(
        self,
        broker_id: int,
        cache: MetadataCache,
        partitions: Partitions,
        log_manager: LogManager,
        now: Callable[[], float],
    ) -> None:
        self._broker_id = broker_id
        self._cache = cache
        self._partitions = partitions
        self._log_manager = log_manager
        self._now = now
        self._since: dict[TopicPartition, float] = {}

    def note(self, told: Iterable[UpdateMetadataPartition]) -> None:
        """After the cache has taken it over."""
        for state in told:
            key = TopicPartition(state.topic, state.partition)
            if not self.is_stray(key):
                self._since.pop(key, None)
            else:
                self._since.setdefault(key, self._now())

    def is_stray(self, key: TopicPartition) -> bool:
        """Whether a log is here that the controller assigns to others."""
        partition = self._partitions.get(key)
        leader_epoch = -1 if partition is None else partition.leader_epoch
        return self._log_manager.get(key) is not None and is_assigned_elsewhere(
            self._broker_id, self._cache.partition(*key), leader_epoch
        )

    def due(self) -> list[TopicPartition]:
        """Each once, until it is assigned here again."""
        latest = self._now() - GRACE_SECONDS
        due = [key for key, since in self._since.items() if since <= latest]
        self._since.update(dict.fromkeys(due, math.inf))
        return [key for key in due if self.is_stray(key)]

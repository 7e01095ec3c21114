"""The states of partitions and of replicas, and which may follow which (Kafka's tables)."""

from enum import Enum


class PartitionState(Enum):
    """The number is Kafka's."""

    NEW = 0  # has replicas, has had no leader yet
    ONLINE = 1  # has a leader
    OFFLINE = 2  # the leader died and none has followed
    NON_EXISTENT = 3  # never created, or deleted


class ReplicaState(Enum):
    """The number is Kafka's."""

    NEW = 1  # assigned, not started
    ONLINE = 2
    OFFLINE = 3  # its broker is gone, or stopping
    DELETION_STARTED = 4  # told to delete its log
    DELETION_SUCCESSFUL = 5  # says it has
    DELETION_INELIGIBLE = 6  # cannot delete now: its broker is gone or failed to
    NON_EXISTENT = 7


PARTITION_PREVIOUS: dict[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.OFFLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}

REPLICA_PREVIOUS: dict[ReplicaState, frozenset[ReplicaState]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: frozenset(
        {
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.OFFLINE: frozenset(
        {
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset(
        {ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}
    ),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}

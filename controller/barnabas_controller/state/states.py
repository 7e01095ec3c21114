"""The states of partitions and of replicas, and their legal changes (Kafka's tables)."""

import logging
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
S = TypeVar("S", "PartitionState", "ReplicaState")


class PartitionState(Enum):
    """The numbers are Kafka's."""

    NEW = 0  # has replicas, has had no leader yet
    ONLINE = 1  # has a leader
    OFFLINE = 2  # the leader is offline and no other has been elected
    NON_EXISTENT = 3  # never created, or deleted


class ReplicaState(Enum):
    """The numbers are Kafka's."""

    NEW = 1  # assigned, not started
    ONLINE = 2
    OFFLINE = 3  # its broker is not alive, or its log directory failed
    DELETION_STARTED = 4  # its broker was sent a StopReplica that deletes it
    DELETION_SUCCESSFUL = 5  # its broker has confirmed the deletion
    DELETION_INELIGIBLE = 6  # cannot be deleted now: it is offline, or the deletion failed
    NON_EXISTENT = 7


_P, _R = PartitionState, ReplicaState

# The states from which each state may be entered.
PARTITION_PREVIOUS: dict[PartitionState, set[PartitionState]] = {
    _P.NEW: {_P.NON_EXISTENT},
    _P.ONLINE: {_P.NEW, _P.ONLINE, _P.OFFLINE},
    _P.OFFLINE: {_P.NEW, _P.ONLINE, _P.OFFLINE},
    _P.NON_EXISTENT: {_P.OFFLINE},
}
REPLICA_PREVIOUS: dict[ReplicaState, set[ReplicaState]] = {
    _R.NEW: {_R.NON_EXISTENT},
    _R.ONLINE: {_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE},
    _R.OFFLINE: {_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE},
    _R.DELETION_STARTED: {_R.OFFLINE},
    _R.DELETION_SUCCESSFUL: {_R.DELETION_STARTED},
    _R.DELETION_INELIGIBLE: {_R.OFFLINE, _R.DELETION_STARTED},
    _R.NON_EXISTENT: {_R.DELETION_SUCCESSFUL},
}


def legal(
    items: Iterable[T], state_of: Callable[[T], S], target: S, previous: Mapping[S, set[S]]
) -> list[T]:
    """The partitions or replicas that may change to the target state; logs the others."""
    found = []
    for item in items:
        present = state_of(item)
        if present in previous[target]:
            found.append(item)
        else:
            logger.error("%s: cannot go from %s to %s", item, present.name, target.name)
    return found

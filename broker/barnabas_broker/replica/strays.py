"""Stray replicas: the controller assigns them to other brokers, but sent no StopReplica.

A reassignment does not wait for the brokers it leaves: a broker that was not running when it ended,
or whose StopReplica was lost with the controller, keeps its replica. That replica would fetch from
a leader that refuses it, or remain leader forever. Kafka detects strays only with a KRaft
controller, whose first LeaderAndIsr is complete (KAFKA-15605). Here UpdateMetadata shows them,
because it names the replicas of every partition. A log whose topic was deleted in the meantime, or
is missing in a ZooKeeper that was restored from an older copy, is reported too. If another topic of
that name has a replica here, its log can be created once the old role is given up.

The log stays, as in Kafka: only an operator may delete what may still be needed.
"""

import math
from collections.abc import Awaitable, Callable
from functools import partial

from barnabas_common.messages.control import UpdateMetadataPartition, UpdateMetadataRequest
from barnabas_common.messages.sentinels import LEADER_DURING_DELETE, NO_EPOCH
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.topic_identity import same_topic

# A StopReplica follows within milliseconds of the UpdateMetadata that no longer names the replica.
GRACE_SECONDS = 10.0
INTERVAL_SECONDS = 5.0


def is_assigned_elsewhere(
    broker_id: int, states: UpdateMetadataPartition | None, leader_epoch: int
) -> bool:
    """Whether metadata that is no older than the role here names only other brokers.

    `leader_epoch` is that of the replica's role, -1 without one. Every change of an assignment
    raises it, so metadata that is older than the role is recognized.
    """
    return (
        states is not None
        and states.leader != LEADER_DURING_DELETE
        and broker_id not in states.replicas
        and leader_epoch <= states.leader_epoch
    )


TopicId = Callable[[str], Awaitable[str | None]]
"""Reads the id of a topic; None if that cannot be done now."""


async def unknown_topic_id(_topic: str) -> str | None:
    """The `TopicId` of a broker without ZooKeeper."""
    return None


class Strays:
    """`note` takes each UpdateMetadata; `look` gives up the roles of strays after a grace time."""

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
        self._unnamed: frozenset[str] | None = None

    def note(self, request: UpdateMetadataRequest) -> None:
        """Take note of an update, which the metadata cache must have already."""
        keys = [TopicPartition(state.topic, state.partition) for state in request.partitions]
        if request.names_all_topics:
            going = (s.topic for s in request.partitions if s.leader == LEADER_DURING_DELETE)
            self._unnamed = frozenset(request.other_topics).union(going)
            keys += [log.topic_partition for log in self._log_manager.logs()]
        for key in dict.fromkeys(keys):
            if not self.is_stray(key):
                self._since.pop(key, None)
            else:
                self._since.setdefault(key, self._now())

    def is_stray(self, key: TopicPartition) -> bool:
        """Whether this broker has a log of a partition that is assigned to others, or is gone."""
        log, partition = self._log_manager.get(key), self._partitions.get(key)
        if log is None:
            return False
        if self.is_replaced(key) or (partition is None and self._is_gone(key.topic)):
            return True
        leader_epoch = NO_EPOCH if partition is None else partition.leader_epoch
        states = self._cache.partition(*key)
        return is_assigned_elsewhere(self._broker_id, states, leader_epoch)

    def is_replaced(self, key: TopicPartition) -> bool:
        """Whether the role here is of a topic that was deleted, and another has its name now."""
        log = self._log_manager.get(key)
        if log is None or self._partitions.get(key) is None or not self._cache.contains(key.topic):
            return False
        return not same_topic(log.topic_id, self._cache.topic_id(key.topic))

    def _is_gone(self, topic: str) -> bool:
        """Whether the topic does not exist. Those of `_unnamed` have no states in the metadata."""
        unnamed = self._unnamed
        return unnamed is not None and topic not in unnamed and not self._cache.contains(topic)

    def why(self, key: TopicPartition) -> str:
        """What is wrong with a stray, for humans."""
        if self.is_replaced(key):
            return "another topic has its name now, and no StopReplica was received"
        if self._is_gone(key.topic):
            return "its topic does not exist any more"
        return "the controller assigns it to others, and no StopReplica was received"

    def _due(self) -> list[TopicPartition]:
        """Each stray once, until it has been assigned here again."""
        latest = self._now() - GRACE_SECONDS
        due = [key for key, since in self._since.items() if since <= latest]
        self._since.update(dict.fromkeys(due, math.inf))
        return [key for key in due if self.is_stray(key)]

    async def look(
        self,
        leave: Callable[[TopicPartition, Callable[[], bool], str], Awaitable[None]],
        topic_id: TopicId,
        ask_for_roles: Callable[[], None],
    ) -> None:
        """Give up the roles of all strays that are due, by `leave(partition, is_stray, why)`."""
        for key in self._due():
            is_replaced = self.is_replaced(key)
            if is_replaced and not await self._has_its_name(key.topic, topic_id):
                self._since[key] = self._now()
                continue
            await leave(key, partial(self.is_stray, key), self.why(key))
            if is_replaced:  # the new topic may have a replica here, whose role was refused
                ask_for_roles()

    async def _has_its_name(self, topic: str, topic_id: TopicId) -> bool:
        """Whether ZooKeeper has the same topic as the metadata, which may be older than the roles
        of a broker that is cut off from the controller."""
        registered = await topic_id(topic)
        return self._cache.contains(topic) and self._cache.topic_id(topic) == registered

"""Listeners for changes of role: a coordinator starts and stops with the partitions of its topic.

A listener is called synchronously, at the moment the partition has taken its role, and in the order
of the changes. Nothing here awaits, so a listener must only take note or start a task.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.partition.partition import Partition

logger = logging.getLogger(__name__)


class RoleListener(Protocol):
    """The calls for each replica of a topic; compare Kafka's `onElection`, `onResignation`."""

    def became_leader(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """This broker leads, under this epoch; also called if it led under an earlier one."""

    def became_follower(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """Another broker leads, or none does, under this epoch."""

    def stopped(self, topic_partition: TopicPartition) -> None:
        """The replica was stopped or deleted, is a stray, or its log is damaged or failed."""


class RoleListeners:
    """The listeners of each topic. A failure of one is logged, and the others are still called."""

    def __init__(self) -> None:
        self._by_topic: dict[str, list[RoleListener]] = {}

    def add(self, topic: str, listener: RoleListener, hosted: Iterable[Partition]) -> None:
        """Register a listener, and notify it of the partitions that are `hosted` now and led."""
        self._by_topic.setdefault(topic, []).append(listener)
        for partition in hosted:
            key, leadership = partition.topic_partition, partition.leadership
            if key.topic == topic and leadership is not None:
                self._call(listener.became_leader, key, leadership.epoch)

    def role_taken(self, partition: Partition) -> None:
        """The partition has become leader or follower."""
        key = partition.topic_partition
        for listener in self._by_topic.get(key.topic, ()):
            notify = (
                listener.became_follower if partition.leadership is None else listener.became_leader
            )
            self._call(notify, key, partition.leader_epoch)

    def stopped(self, key: TopicPartition) -> None:
        """The replica has no role any more."""
        for listener in self._by_topic.get(key.topic, ()):
            self._call(listener.stopped, key)

    def _call(self, notify: Callable[..., None], *arguments: object) -> None:
        try:
            notify(*arguments)
        except Exception:
            logger.exception("a role listener failed: %s%s", notify.__name__, arguments)

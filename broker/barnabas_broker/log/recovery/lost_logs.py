"""Logs that a checkpoint names and whose folder is missing or damaged.

An empty or shortened log must not replace a lost one: as a leader it would make its followers
remove the records that they still have. So it is refused while the replica is in the ISR
(`LogManager.get_or_create`). The checkpoint keeps the lines of lost logs, so that the next start
knows them too.
"""

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from barnabas_common.messages.control import UpdateMetadataPartition
from barnabas_common.messages.sentinels import NO_EPOCH
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.errors import LostLogError


class LostLog(NamedTuple):
    """Its directory and its high watermark. `damage`: what is wrong with the folder; empty if it
    is missing."""

    directory: str
    high_watermark: int
    damage: str = ""


class LostLogs:
    """The lost logs of one broker.

    A role is requested again that was refused because of one of them. If the controller has asked
    what is here instead of giving a role, that is done under a later leader epoch: before, the
    question would come again.
    """

    def __init__(self) -> None:
        self._lost: dict[TopicPartition, LostLog] = {}
        # With the leader epoch of the question, NO_EPOCH for a role.
        self._refused: dict[TopicPartition, int] = {}

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._lost

    def __bool__(self) -> bool:
        return bool(self._lost)

    def get(self, topic_partition: TopicPartition) -> LostLog | None:
        return self._lost.get(topic_partition)

    def is_needed(self, topic_partition: TopicPartition, in_sync: bool, has_leader: bool) -> bool:
        """Whether the lost log must not be replaced yet."""
        lost = self._lost.get(topic_partition)
        return lost is not None and (in_sync or (bool(lost.damage) and not has_leader))

    def check_may_be_replaced(
        self, topic_partition: TopicPartition, in_sync: bool, has_leader: bool
    ) -> None:
        """Raise LostLogError if the log is lost and must not be replaced yet."""
        if self.is_needed(topic_partition, in_sync, has_leader):
            self._refused[topic_partition] = NO_EPOCH
            raise LostLogError(f"{topic_partition}: {self.describe()[topic_partition]}")

    def refuse(self, topic_partition: TopicPartition, leader_epoch: int) -> bool:
        """Whether the log is lost, about which the controller asks under this leader epoch."""
        if topic_partition in self._lost:
            self._refused[topic_partition] = leader_epoch
        return topic_partition in self._lost

    def take_free(
        self, states: Iterable[UpdateMetadataPartition], broker_id: int
    ) -> list[TopicPartition]:
        """The partitions of which this broker's role can be taken now, each once."""
        if not self._refused:
            return []
        named = {TopicPartition(state.topic, state.partition): state for state in states}
        free = [name for name, state in named.items() if self._is_free(name, state, broker_id)]
        for name in free:
            del self._refused[name]
        return free

    def _is_free(
        self, name: TopicPartition, state: UpdateMetadataPartition, broker_id: int
    ) -> bool:
        refused_under = self._refused.get(name)
        if refused_under is None or state.leader_epoch <= refused_under:
            return False
        in_sync, has_leader = broker_id in state.in_sync_replicas, state.leader >= 0
        return broker_id in state.replicas and not self.is_needed(name, in_sync, has_leader)

    def add_damaged(self, topic_partition: TopicPartition, lost: LostLog) -> None:
        """Add a log that would lose committed records if it were opened."""
        self._lost[topic_partition] = lost

    def look_for(
        self,
        directory: str,
        named: Mapping[TopicPartition, int],
        present: Container[TopicPartition | None],
    ) -> None:
        """Add the logs that a directory's checkpoints name and that are not `present` anywhere."""
        for topic_partition, high_watermark in named.items():
            if topic_partition not in present and topic_partition not in self._lost:
                self._lost[topic_partition] = LostLog(directory, high_watermark)

    def forget(self, topic_partition: TopicPartition) -> None:
        """Remove a log that exists again, or that was deleted."""
        self._lost.pop(topic_partition, None)
        self._refused.pop(topic_partition, None)

    def high_watermarks(self, directory: str) -> dict[TopicPartition, int]:
        """Their lines in the directory's checkpoint."""
        return {
            name: lost.high_watermark
            for name, lost in self._lost.items()
            if lost.directory == directory
        }

    def describe(self) -> dict[TopicPartition, str]:
        """One sentence about each."""
        return {
            name: lost.damage
            or f"its folder is missing from {lost.directory};"
            f" its high watermark was {lost.high_watermark}"
            for name, lost in self._lost.items()
        }

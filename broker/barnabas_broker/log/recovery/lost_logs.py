"""Logs that a checkpoint names and whose folder is missing or damaged.

An empty or shortened log must not replace a lost one: as a leader it would make its followers
remove the records that they still have. So it is refused while the replica is in the ISR
(`LogManager.get_or_create`). The checkpoint keeps the lines of lost logs, so that the next start
knows them too.
"""

from collections.abc import Container, Mapping
from typing import NamedTuple

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

    `refused`: those because of which a role was refused that has not been requested again, with the
    leader epoch of the controller's question where there was no role, else -1.
    """

    def __init__(self) -> None:
        self._lost: dict[TopicPartition, LostLog] = {}
        self.refused: dict[TopicPartition, int] = {}

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
            self.refused[topic_partition] = NO_EPOCH
            raise LostLogError(f"{topic_partition}: {self.describe()[topic_partition]}")

    def refuse(self, topic_partition: TopicPartition, leader_epoch: int) -> bool:
        """Whether the log is lost, of which the controller asked under a leader epoch. Its role is
        requested under a later one, when the log is not needed: before, the question would come
        again."""
        if topic_partition in self._lost:
            self.refused[topic_partition] = leader_epoch
        return topic_partition in self._lost

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
        self.refused.pop(topic_partition, None)

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

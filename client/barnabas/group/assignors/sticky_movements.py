"""Which partitions a rebalance has moved so far, and from whom to whom.

If a partition of a topic went from A to B, no other partition of that topic needs to go from B to
A: the first can go back instead.
"""

from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition


class _Movement(NamedTuple):
    topic: str
    source: str
    destination: str


class PartitionMovements:
    def __init__(self) -> None:
        self._of_partition: dict[TopicPartition, _Movement] = {}
        self._partitions: dict[_Movement, list[TopicPartition]] = {}

    def record(self, tp: TopicPartition, source: str, destination: str) -> None:
        """A partition moves; if it has moved before, only its first source counts."""
        earlier = self._of_partition.pop(tp, None)
        if earlier is not None:
            self._partitions[earlier].remove(tp)
            source = earlier.source
            if source == destination:
                return
        movement = _Movement(tp.topic, source, destination)
        self._of_partition[tp] = movement
        self._partitions.setdefault(movement, []).append(tp)

    def instead_of(self, tp: TopicPartition, source: str, destination: str) -> TopicPartition:
        """The partition to move so that none of this topic goes there and back."""
        earlier = self._of_partition.get(tp)
        if earlier is not None:
            source = earlier.source
        there_before = self._partitions.get(_Movement(tp.topic, destination, source))
        return there_before[0] if there_before else tp

"""Logs that a data directory's checkpoints speak of and whose folder is gone.

An empty log in the place of a lost one must not count as what it was: as a leader it would have
its followers drop what they still hold. So it is refused while the replica is in the ISR (see
`LogManager.get_or_create`). The checkpoint keeps their lines, so that another restart does not
forget them.
"""

from collections.abc import Container, Mapping

from barnabas.topic_partition import TopicPartition


class LostLogs:
    """The lost logs of one broker, each with the directory that had it and its high watermark.

    `refused`: those of a role that was refused for it, and not yet asked for again.
    """

    def __init__(self) -> None:
        self._lost: dict[TopicPartition, tuple[str, int]] = {}
        self.refused: dict[TopicPartition, None] = {}

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._lost

    def __bool__(self) -> bool:
        return bool(self._lost)

    def look_for(
        self,
        directory: str,
        named: Mapping[TopicPartition, int],
        present: Container[TopicPartition | None],
    ) -> None:
        """Take note of what a directory's checkpoints name and is not `present` anywhere."""
        for topic_partition, high_watermark in named.items():
            if topic_partition not in present:
                self._lost[topic_partition] = (directory, high_watermark)

    def forget(self, topic_partition: TopicPartition) -> None:
        """There is a log of that name again, or there is not to be one."""
        self._lost.pop(topic_partition, None)
        self.refused.pop(topic_partition, None)

    def high_watermarks(self, directory: str) -> dict[TopicPartition, int]:
        """What the directory's checkpoint goes on to say of them."""
        return {name: hw for name, (home, hw) in self._lost.items() if home == directory}

    def describe(self) -> dict[TopicPartition, str]:
        """One sentence of each."""
        return {
            name: f"its folder is gone from {home}, where its high watermark was {high_watermark}"
            for name, (home, high_watermark) in self._lost.items()
        }

"""The name of one partition of one topic."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number, from 0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """The form that folders and Kafka's own messages have, as in `flights-3`."""
        return f"{self.topic}-{self.partition}"

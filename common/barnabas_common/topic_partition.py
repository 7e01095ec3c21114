"""The name of one partition of one topic."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number, from 0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """The form that folders and Kafka's own messages have, as in `flights-3`."""
        return f"{self.topic}-{self.partition}"


class Named(Protocol):
    """An item of a request that names a partition."""

    topic: str
    partition: int


N = TypeVar("N", bound=Named)


def named_once(items: Iterable[N]) -> list[N]:
    """Each partition once, at the place where it is named first, as it is named last.

    So Kafka reads the lists of most requests. A small request that names one partition a thousand
    times must not get a thousand answers.
    """
    return list({(item.topic, item.partition): item for item in items}.values())

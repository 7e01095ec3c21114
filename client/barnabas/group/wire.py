"""The primitive types of Kafka's protocol that groups keep in opaque bytes: big-endian, lengths
first."""

import struct
from collections.abc import Iterable, Mapping, Sequence

from barnabas_common.topic_partition import TopicPartition


class Truncated(ValueError):
    """The bytes end before the value does, or a length makes no sense."""


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, both in the order given."""
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return topics


class Writer:
    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def content(self) -> bytes:
        return b"".join(self._parts)

    def int16(self, value: int) -> None:
        self._parts.append(struct.pack(">h", value))

    def int32(self, value: int) -> None:
        self._parts.append(struct.pack(">i", value))

    def string(self, value: str | None) -> None:
        encoded = None if value is None else value.encode()
        self.int16(-1 if encoded is None else len(encoded))
        self._parts.append(encoded or b"")

    def bytes(self, value: bytes | None) -> None:
        self.int32(-1 if value is None else len(value))
        self._parts.append(value or b"")

    def strings(self, values: Sequence[str]) -> None:
        self.int32(len(values))
        for value in values:
            self.string(value)

    def topic_partitions(self, topics: Mapping[str, Sequence[int]]) -> None:
        self.int32(len(topics))
        for topic, partitions in topics.items():
            self.string(topic)
            self.int32(len(partitions))
            self._parts.append(struct.pack(f">{len(partitions)}i", *partitions))


class Reader:
    """Raises `Truncated` instead of reading past the end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise Truncated(f"a string is not UTF-8: {error}") from None

    def string(self) -> str:
        return self.nullable_string() or ""

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def strings(self) -> list[str]:
        return [self.string() for _ in range(self._count(2))]

    def topic_partitions(self) -> list[TopicPartition]:
        found = []
        for _ in range(self._count(6)):
            topic = self.string()
            found += [TopicPartition(topic, self.int32()) for _ in range(self._count(4))]
        return found

    def _count(self, least_size: int) -> int:
        """The length of an array whose elements have at least `least_size` bytes."""
        count = self.int32()
        if count < 0 or count * least_size > len(self._content) - self._position:
            raise Truncated(f"an array of {count} elements does not fit")
        return count

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._content):
            raise Truncated(f"{size} bytes wanted, {len(self._content) - self._position} left")
        taken = self._content[self._position : end]
        self._position = end
        return taken

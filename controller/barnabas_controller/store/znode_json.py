"""The JSON of znodes: written compactly, checked field by field when read."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode


def encode(content: Mapping[str, Any]) -> bytes:
    """Compact JSON, with the fields in the order of the mapping."""
    return json.dumps(content, separators=(",", ":")).encode()


_MISSING: Any = object()
# Ids and epochs have 32 bits in messages, broker epochs 64.
MAX_INT = 2**31 - 1
MAX_WHY = 500
MAX_LONG = 2**63 - 1


def _is_encodable(text: str) -> bool:
    """Whether UTF-8 can encode the text: JSON can escape half a surrogate pair, UTF-8 cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


class JsonReader:
    """Typed access to a JSON object.

    Every method raises `MalformedZnode` with the path if a field is missing without a default, or
    has another type.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self.malformed(f"not JSON ({error}): {data[:80]!r}") from None
        if not isinstance(content, dict):
            raise self.malformed(f"not a JSON object: {data[:80]!r}")
        self._content: dict[str, Any] = content

    def malformed(self, why: str) -> MalformedZnode:
        """The error to raise; at most `MAX_WHY` characters of the reason are kept."""
        return MalformedZnode(self._path, why[:MAX_WHY])

    def has(self, name: str) -> bool:
        """Whether the field exists and is not null."""
        return self._content.get(name) is not None

    def _field(self, name: str, default: Any) -> Any:
        value = self._content.get(name, default)
        if value is _MISSING:
            raise self.malformed(f"no field {name!r}")
        return value

    def integer(self, name: str, default: Any = _MISSING) -> int:
        return self._as_int(name, self._field(name, default))

    def long(self, name: str, default: Any = _MISSING) -> int:
        """An integer of 64 bits. A zxid of an ensemble has more than 32 from the beginning."""
        return self._as_int(name, self._field(name, default), MAX_LONG)

    def _as_int(self, name: str, value: Any, limit: int = MAX_INT) -> int:
        if type(value) is not int or not -limit - 1 <= value <= limit:
            raise self.malformed(f"{name} is not an integer in range: {value!r}")
        return value

    def boolean(self, name: str, default: Any = _MISSING) -> bool:
        value = self._field(name, default)
        if type(value) is not bool:
            raise self.malformed(f"{name} is neither true nor false: {value!r}")
        return value

    def integers_by_number(self, name: str) -> dict[int, int]:
        """A field such as `{"1":17,...}`; empty if it is missing."""
        found = {}
        for key, value in self.mapping(name, default={}).items():
            if not (key.isascii() and key.isdigit() and len(key) <= len(str(MAX_INT))):
                raise self.malformed(f"{name} has a key that is not a number: {key!r}")
            found[int(key)] = self._as_int(f"{name} of {key}", value, MAX_LONG)
        return found

    def string(self, name: str) -> str:
        return self.as_string(name, self._field(name, _MISSING))

    def as_string(self, name: str, value: Any) -> str:
        """The value if it is a string; `name` is for the error."""
        if not isinstance(value, str):
            raise self.malformed(f"{name} is not a string: {value!r}")
        if not _is_encodable(value):
            raise self.malformed(f"{name} is not valid Unicode: {value!r}")
        return value

    def array(self, name: str) -> Sequence[Any]:
        value = self._field(name, _MISSING)
        if not isinstance(value, list):
            raise self.malformed(f"{name} is not a list: {value!r}")
        return value

    def objects(self, name: str) -> "list[JsonReader]":
        """A list of objects, each as a reader."""
        return [JsonReader(self._path, json.dumps(item).encode()) for item in self.array(name)]

    def partitions(self) -> list[TopicPartition]:
        """The field `"partitions":[{"topic":"flights","partition":0},...]`."""
        items = self.objects("partitions")
        return [TopicPartition(item.string("topic"), item.integer("partition")) for item in items]

    def mapping(self, name: str, default: Any = _MISSING) -> Mapping[str, Any]:
        value = self._field(name, default)
        if not isinstance(value, dict):
            raise self.malformed(f"{name} is not an object: {value!r}")
        return value

    def ints(self, name: str) -> tuple[int, ...]:
        return tuple(self._as_int(name, item) for item in self.array(name))

    def replica_lists(self, name: str, default: Any = _MISSING) -> dict[int, tuple[int, ...]]:
        """A field such as `{"0":[1,2],...}`: the ids of distinct brokers, by partition number."""
        lists: dict[int, tuple[int, ...]] = {}
        for key, value in self.mapping(name, default).items():
            if not (key.isascii() and key.isdigit() and len(key) <= 9):
                raise self.malformed(f"{name} names a partition that is not a number: {key!r}")
            if not isinstance(value, list):
                raise self.malformed(f"{name} of {key} is not a list: {value!r}")
            replicas = tuple(self._as_int(f"{name} of {key}", item) for item in value)
            if len(set(replicas)) != len(replicas) or any(replica < 0 for replica in replicas):
                raise self.malformed(f"{name} of {key} are not distinct broker ids: {value!r}")
            lists[int(key)] = replicas
        return lists

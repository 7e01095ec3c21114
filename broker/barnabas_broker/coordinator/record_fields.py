"""The fields of Kafka's coordinator records, in the classic encoding.

    int16, int32, int64  big-endian
    string               int16 length, UTF-8; length -1: null
    bytes                int32 length; length -1: null
    array                int32 count, items; count -1: null

The newest versions of the values are "flexible" (KIP-482): lengths are unsigned varints plus one,
and tagged fields end each struct.
"""

import struct
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

MAX_STRING_BYTES = 32_767

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class UnreadableRecord(ValueError):
    """The bytes are not a record of this schema; the message says why."""


def fits(*texts: str) -> bool:
    """Whether each of the texts can be written as a string."""
    return all(len(text.encode()) <= MAX_STRING_BYTES for text in texts)


class FieldWriter:
    """Appends fields; `data` is what was written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.flexible = False

    @property
    def data(self) -> bytes:
        return b"".join(self._parts)

    def int8(self, value: int) -> None:
        self._parts.append(_INT8.pack(value))

    def int16(self, value: int) -> None:
        self._parts.append(_INT16.pack(value))

    def int32(self, value: int) -> None:
        self._parts.append(_INT32.pack(value))

    def int64(self, value: int) -> None:
        self._parts.append(_INT64.pack(value))

    def string(self, value: str | None) -> None:
        encoded = b"" if value is None else value.encode()
        self._length(self.int16, -1 if value is None else len(encoded))
        self._parts.append(encoded)

    def byte_string(self, value: bytes) -> None:
        self._length(self.int32, len(value))
        self._parts.append(value)

    def array_size(self, size: int | None) -> None:
        """Begin an array; None is null."""
        self._length(self.int32, -1 if size is None else size)

    def tags(self, tags: Mapping[int, bytes]) -> None:
        """The tagged fields at the end of a struct; a classic encoding has no place for them."""
        if not self.flexible:
            return
        self._unsigned_varint(len(tags))
        for tag, data in sorted(tags.items()):
            self._unsigned_varint(tag)
            self._unsigned_varint(len(data))
            self._parts.append(data)

    def _length(self, classic: Callable[[int], None], length: int) -> None:
        if self.flexible:
            self._unsigned_varint(length + 1)
        else:
            classic(length)

    def _unsigned_varint(self, value: int) -> None:
        groups = bytearray()
        while value >= 0x80:
            groups.append(value & 0x7F | 0x80)
            value >>= 7
        groups.append(value)
        self._parts.append(bytes(groups))


class FieldReader:
    """Reads fields one after the other; raises `UnreadableRecord` where the bytes do not fit."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.flexible = False

    def int8(self) -> int:
        return int(_INT8.unpack(self._take(1))[0])

    def int16(self) -> int:
        return int(_INT16.unpack(self._take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(4))[0])

    def int64(self) -> int:
        return int(_INT64.unpack(self._take(8))[0])

    def string(self) -> str:
        """A string that may not be null."""
        value = self.nullable_string()
        if value is None:
            raise UnreadableRecord(f"null at byte {self._position}, where a string must be")
        return value

    def nullable_string(self) -> str | None:
        length = self._length(self.int16)
        if length < 0:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise UnreadableRecord(f"a string is not UTF-8: {error}") from error

    def byte_string(self) -> bytes:
        """Bytes; null is read as empty."""
        length = self._length(self.int32)
        return self._take(length) if length >= 0 else b""

    def array(self, read_item: Callable[[], T]) -> list[T]:
        return [read_item() for _ in range(self._length(self.int32))]

    def tagged_fields(self) -> dict[int, bytes]:
        """The tagged fields at the end of a struct; there are none in a classic encoding."""
        if not self.flexible:
            return {}
        tags = {}
        for _ in range(self._unsigned_varint()):
            tag = self._unsigned_varint()
            tags[tag] = self._take(self._unsigned_varint())
        return tags

    def _length(self, classic: Callable[[], int]) -> int:
        return self._unsigned_varint() - 1 if self.flexible else classic()

    def _unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise UnreadableRecord(f"a length of more than 32 bits at byte {self._position}")

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise UnreadableRecord(
                f"{size} bytes expected at byte {self._position} of {len(self._data)}"
            )
        taken = self._data[self._position : end]
        self._position = end
        return taken

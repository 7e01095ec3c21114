"""One dataclass to its protobuf message and back; used by `barnabas.messages.codec` alone.

A dataclass and its message have the same fields under the same names (a test holds them
together), so a converter needs nothing but the two types. It looks at the fields once and is then
as quick as code written by hand: about a microsecond for each partition.

Records take a road of their own when encoding. protobuf would copy them into its arena, then
again and again while its output grows (250 us for 256 KiB, 1.3 ms for 1 MiB); so a message that
contains `bytes` is encoded in chunks, its records among them untouched, and joined once (20 us for
256 KiB). The result is plain protobuf: fields may come in any order.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, get_args, get_origin, get_type_hints

from google.protobuf.message_factory import GetMessageClass

_LENGTH_DELIMITED = 2

Chunks = list[Any]


class Converter:
    """Converts between the dataclass `cls` and the protobuf class `proto`."""

    def __init__(self, cls: type[Any], proto: type[Any]) -> None:
        self.cls = cls
        self.proto = proto
        hints = get_type_hints(cls)
        self._names = [field.name for field in fields(cls)]
        self._scalars: list[str] = []
        self._scalar_lists: list[str] = []
        self._bytes: list[tuple[str, bytes]] = []
        self._nested: list[tuple[str, bytes, Converter]] = []
        for name in self._names:
            self._classify(name, hints[name])
        self.has_bytes: bool = bool(self._bytes) or any(
            item.has_bytes for _, _, item in self._nested
        )
        self.decode = self._decoder()
        self._scalar_values = _all_of(self._scalars)

    def _classify(self, name: str, hint: Any) -> None:
        field = self.proto.DESCRIPTOR.fields_by_name[name]
        if get_origin(hint) is list:
            (item,) = get_args(hint)
            if isinstance(item, type) and field.message_type is not None:
                converter = Converter(item, GetMessageClass(field.message_type))
                self._nested.append((name, tag(field.number), converter))
            else:
                self._scalar_lists.append(name)
        elif hint is bytes:
            self._bytes.append((name, tag(field.number)))
        else:
            self._scalars.append(name)

    def _decoder(self) -> Callable[[Any], Any]:
        """Read a protobuf message into the dataclass."""
        cls, values_of = self.cls, _all_of(self._names)
        lists = [self._names.index(name) for name in self._scalar_lists]
        nested = [(self._names.index(name), item.decode) for name, _, item in self._nested]
        if not lists and not nested:
            return lambda message: cls(*values_of(message))

        def decode(message: Any) -> Any:
            values = list(values_of(message))
            for index in lists:
                values[index] = list(values[index])
            for index, decode_item in nested:
                values[index] = [decode_item(item) for item in values[index]]
            return cls(*values)

        return decode

    def fill(self, message: Any, target: Any) -> None:
        """Set every field of the protobuf message `target`, which is empty, but for `bytes`."""
        for name, value in zip(self._scalars, self._scalar_values(message), strict=True):
            if value:
                setattr(target, name, value)
        for name in self._scalar_lists:
            getattr(target, name).extend(getattr(message, name))
        for name, _, converter in self._nested:
            if not converter.has_bytes:
                add, fill = getattr(target, name).add, converter.fill
                for item in getattr(message, name):
                    fill(item, add())

    def encode(self, message: Any, chunks: Chunks) -> int:
        """Append the protobuf encoding of `message` to `chunks`; returns its size in bytes."""
        target = self.proto()
        self.fill(message, target)
        head = target.SerializeToString()
        chunks.append(head)
        size = len(head)
        for name, field_tag in self._bytes:
            data = getattr(message, name)
            if data:
                prefix = field_tag + varint(len(data))
                chunks += (prefix, data)
                size += len(prefix) + len(data)
        for name, field_tag, converter in self._nested:
            if converter.has_bytes:
                for item in getattr(message, name):
                    size += converter.encode_field(field_tag, item, chunks)
        return size

    def encode_field(self, field_tag: bytes, message: Any, chunks: Chunks) -> int:
        """As `encode`, as the field of an enclosing message: preceded by tag and length."""
        position = len(chunks)
        chunks.append(b"")
        size = self.encode(message, chunks)
        prefix = field_tag + varint(size)
        chunks[position] = prefix
        return len(prefix) + size


def tag(field_number: int) -> bytes:
    """What precedes the length of a message or bytes field."""
    return varint(field_number << 3 | _LENGTH_DELIMITED)


def varint(value: int) -> bytes:
    """protobuf's variable-length integer: seven bits a byte, the lowest first."""
    if value < 0x80:
        return value.to_bytes(1, "little")
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _all_of(names: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    """A function from an object to the values of these attributes, in order."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda source: (only(source),)
    return attrgetter(*names)

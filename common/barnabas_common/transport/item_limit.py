"""A bound on the items that a client's request may name, checked before it is decoded.

An empty item takes two bytes in a frame, and some hundred as an object. A request below the limit
in bytes could take all memory of a broker, and its event loop for minutes.
"""

from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

MAX_ITEMS = 100_000

_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}
_NO_NUMBERS = (
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE,
)


class TooManyItems(ValueError):
    """The message has more items than the limit."""


class Lists(NamedTuple):
    """Where a message has lists: in the messages it contains, lists of numbers, any at all."""

    messages: "dict[int, Lists]"
    numbers: frozenset[int]
    any: bool


def lists_of(message: Descriptor) -> Lists:
    """The lists in messages of this type."""
    messages = {f.number: lists_of(f.message_type) for f in message.fields if f.message_type}
    lists = [field for field in message.fields if field.is_repeated]
    numbers = frozenset(field.number for field in lists if field.type not in _NO_NUMBERS)
    return Lists(messages, numbers, bool(lists) or any(inner.any for inner in messages.values()))


def check_items(data: bytes, lists: Lists, limit: int = MAX_ITEMS) -> None:
    """Raise TooManyItems if `data` has more than `limit` items; ValueError if it has no structure.

    Every field counts, in each message that may hold a list; a list of numbers by its bytes.
    """
    if len(data) > 2 * limit:  # a field takes two bytes or more
        _left_after(data, 0, len(data), lists, limit)


def _left_after(data: bytes, position: int, end: int, lists: Lists, left: int) -> int:
    while position < end:
        left -= 1
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if kind != _LENGTH_DELIMITED:
            position = _after_number(data, position, kind)
            continue
        size, position = _varint(data, position)
        after = position + size
        if after > end:
            raise ValueError(f"{size} bytes at {position} of {end}")
        inner = lists.messages.get(number)
        if inner is not None and inner.any:
            left = _left_after(data, position, after, inner, left)
        elif number in lists.numbers:
            left -= size
        if left < 0:
            raise TooManyItems
        position = after
    return left


def _after_number(data: bytes, position: int, kind: int) -> int:
    if kind == 0:
        return _varint(data, position)[1]
    if kind not in _FIXED:
        raise ValueError(f"a field of wire type {kind} at {position}")
    return position + _FIXED[kind]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError(f"not a number at {position}")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7

"""What a record is called in a simulation: a label that no other record has.

Of a record without a key it is the value. On a compacted topic the label also names the key, so
that the labels alone say what may take a record's place. A tombstone has no value, and carries its
label in a header.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from barnabas_common.record.record import Header

HEADER = "label"
_KEY = b"@"
_TOMBSTONE = b"~"
_COPIED = b"|"
_FILLED = b"#"


class Labelled(Protocol):
    """A record as any reader returns it."""

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Sequence[Header]: ...


def keyed_label(unique: bytes, key: bytes, is_a_tombstone: bool = False) -> bytes:
    """The label of a record on a compacted topic."""
    return unique + (_TOMBSTONE if is_a_tombstone else b"") + _KEY + key


def key_of(label: bytes) -> bytes | None:
    """The key of the record with this label, None without one."""
    _, found, key = label.partition(_KEY)
    return key if found else None


def is_tombstone(label: bytes) -> bool:
    return label.partition(_KEY)[0].endswith(_TOMBSTONE)


def headers_of(label: bytes) -> list[Header]:
    """The headers that a record is sent with."""
    return [(HEADER, label)] if is_tombstone(label) else []


def label_of(record: Labelled) -> bytes:
    """The label of a record that was read; another one if its parts do not belong together."""
    label = record.value
    if label is None:
        label = next((value for name, value in record.headers if name == HEADER), None) or b""
    if _FILLED in label:
        unfilled = label.partition(_FILLED)[0]
        label = unfilled if filled(unfilled, len(label)) == label else label
    key = key_of(label)
    if key is not None and (key != record.key or is_tombstone(label) != (record.value is None)):
        return b"%s with the key %s" % (label, record.key or b"")
    return label


def filled(label: bytes, size: int) -> bytes:
    """A value of so many bytes, all of which follow from its label."""
    unit = label + _FILLED
    return (unit * (size // len(unit) + 1))[: max(size, len(unit))]


def copy_of(transaction: str, label: bytes) -> bytes:
    """The label of a copy, which no other attempt to copy the same record has."""
    return transaction.encode() + _COPIED + label


def original_of(label: bytes) -> bytes:
    """What a copy is a copy of."""
    return label.partition(_COPIED)[2]


def newest_by_key(records: Iterable[tuple[int, bytes]]) -> dict[bytes, int]:
    """Of each key the highest offset."""
    newest: dict[bytes, int] = {}
    for offset, label in records:
        key = key_of(label)
        if key is not None:
            newest[key] = max(offset, newest.get(key, -1))
    return newest


def may_be_gone(offset: int, label: bytes, newest: Mapping[bytes, int]) -> bool:
    """Whether compaction may have removed a record: a later one has its key, or it is a tombstone.
    When a tombstone may go is for I25 to judge."""
    key = key_of(label)
    return key is not None and (is_tombstone(label) or newest.get(key, -1) > offset)

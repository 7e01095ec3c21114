"""Kafka's `.snapshot` files: the producers of a log as they were at an offset, `<offset>.snapshot`.

    ==  ======  =============================================
     0  int16   version: 1
     2  uint32  CRC-32C of everything from byte 6 on
     6  int32   number of entries
    10  46 x    entries; `producer_state.py` has their fields
    ==  ======  =============================================

Only the last batch of each producer is in a snapshot.
"""

import struct
from collections.abc import Iterable, Mapping

from crc32c import crc32c

from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.producers.producer_state import ENTRY_SIZE

SUFFIX = ".snapshot"
_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_CRC_START = _HEAD.size
_ENTRIES = _CRC_START + _COUNT.size
_PRODUCER_ID = struct.Struct(">q")


def name_of(offset: int) -> str:
    """The file's name."""
    return f"{offset:020d}{SUFFIX}"


def encode_snapshot(entries: Iterable[bytes]) -> bytes:
    """The content of a file."""
    heads = [entry[:ENTRY_SIZE] for entry in entries]
    body = _COUNT.pack(len(heads)) + b"".join(heads)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> dict[int, bytes]:
    """The entries by producer id. Raises MalformedCheckpoint."""
    if len(data) < _ENTRIES:
        raise MalformedCheckpoint(f"{len(data)} bytes, a snapshot has at least {_ENTRIES}")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise MalformedCheckpoint(f"version {version}, only {_VERSION} is known")
    computed = crc32c(memoryview(data)[_CRC_START:])
    if computed != crc:
        raise MalformedCheckpoint(f"CRC is {crc:#010x}, the bytes give {computed:#010x}")
    (count,) = _COUNT.unpack_from(data, _CRC_START)
    if count < 0 or len(data) != _ENTRIES + count * ENTRY_SIZE:
        raise MalformedCheckpoint(f"{len(data)} bytes for {count} entries")
    ids = _PRODUCER_ID.unpack_from
    return {
        ids(data, position)[0]: data[position : position + ENTRY_SIZE]
        for position in range(_ENTRIES, len(data), ENTRY_SIZE)
    }


def offsets_in(names: Iterable[str]) -> Mapping[int, str]:
    """The offsets of the snapshots among the names of files, ascending."""
    found = {}
    for name in names:
        stem = name.removesuffix(SUFFIX)
        if name.endswith(SUFFIX) and stem.isascii() and stem.isdigit():
            found[int(stem)] = name
    return dict(sorted(found.items()))

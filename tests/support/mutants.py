"""Batches with valid checksums and invalid contents, as a broken or hostile client sends them."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from barnabas_common.record.batch import HEADER_SIZE, LOG_OVERHEAD, pack_header, parse_header, seal

from tests.support import plain_codec
from tests.support.plain_codec import encode_varint

_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_BIT_FLIPS = 60
_CUTS = 12
_LENGTHS = (-(2**31), -2, -1, 0, 1, 6, 127, 128, 2**31 - 1, 2**62)


class Mutant(NamedTuple):
    """A batch whose CRC is valid, and the description of its mutation."""

    what: str
    batch: bytes


def mutants(now_ms: int, seed: int = 1) -> Iterator[Mutant]:
    """Yield over 700 mutants, always the same for the same seed."""
    rng = random.Random(seed)
    for compression in _COMPRESSIONS:
        sound = plain_codec.build(
            [
                (now_ms, b"key", b"value" * 3, []),
                (now_ms + 200, None, b"x" * 40, [("trace", b"1"), ("none", None)]),
                (now_ms + 100, b"", None, []),
                (now_ms + 300, b"last", bytes(range(256)), []),
            ],
            compression,
        )
        yield from _damaged(sound, compression, rng)
        yield from _other_headers(sound, compression)
    yield from _lying_records(now_ms)


def _damaged(sound: bytes, name: str, rng: random.Random) -> Iterator[Mutant]:
    body = sound[HEADER_SIZE:]
    for _ in range(_BIT_FLIPS):
        changed, bit = bytearray(body), rng.randrange(8 * len(body))
        changed[bit // 8] ^= 1 << bit % 8
        yield _mutant(f"{name}: bit {bit} flipped", sound, changed)
    for _ in range(_CUTS):
        at = rng.randrange(len(body))
        noise = rng.randbytes(rng.randrange(1, 20))
        yield _mutant(f"{name}: ends after {at} bytes", sound, body[:at])
        yield _mutant(f"{name}: byte {at} is missing", sound, body[:at] + body[at + 1 :])
        yield _mutant(f"{name}: noise at byte {at}", sound, body[:at] + noise + body[at:])
        yield _mutant(f"{name}: noise over byte {at}", sound, body[:at] + noise)
    for tail in (b"\0", b"\x0c\0\0\0\1\1\0", body[-30:], rng.randbytes(50), b"\x80" * 9):
        yield _mutant(f"{name}: {len(tail)} bytes follow", sound, body + tail)


def _other_headers(sound: bytes, name: str) -> Iterator[Mutant]:
    body, header = sound[HEADER_SIZE:], parse_header(sound)
    for count in (0, 1, 3, 5, 1000, 2**31 - 1):
        yield _mutant(
            f"{name}: {count} records", sound, body, record_count=count, last_offset_delta=count - 1
        )
    for codec in range(8):
        yield _mutant(f"{name}: said to be codec {codec}", sound, body, attributes=codec)
    for off in (-1, 1, -(2**40), 2**40):
        latest, base = header.max_timestamp + off, header.base_timestamp + off
        yield _mutant(f"{name}: latest time off by {off}", sound, body, max_timestamp=latest)
        yield _mutant(f"{name}: base time off by {off}", sound, body, base_timestamp=base)


def _lying_records(now_ms: int) -> Iterator[Mutant]:
    """Yield batches in which one field of the first of two records is wrong, but not its length."""
    sound = plain_codec.build([(now_ms, b"k", b"v", [("h", b"1")]), (now_ms, b"k", b"v", [])])
    fields = {
        "attributes": b"\0",
        "time": b"\0",
        "offset": b"\0",
        "key length": encode_varint(1),
        "key": b"k",
        "value length": encode_varint(1),
        "value": b"v",
        "header count": encode_varint(1),
        "header's name length": encode_varint(1),
        "header's name": b"h",
        "header's value length": encode_varint(1),
        "header's value": b"1",
    }
    first = b"".join(fields.values())
    second = sound[HEADER_SIZE + len(encode_varint(len(first))) + len(first) :]
    for field, content in fields.items():
        lies = [encode_varint(length) for length in _LENGTHS]
        lies += [_padded_varint(content[0], size) for size in (2, 5, 6, 10, 11)]
        lies += [b"", b"\xff", b"\x80", b"\xff" * 12]
        for lie in lies:
            record = b"".join({**fields, field: lie}.values())
            body = encode_varint(len(record)) + record + second
            yield _mutant(f"{field} is {lie.hex()}", sound, body)
    for length in _LENGTHS:
        body = encode_varint(length) + first + second
        yield _mutant(f"record length is {length}", sound, body)


def _padded_varint(last: int, size: int) -> bytes:
    """Encode the number of a one-byte varint in `size` bytes, more than it needs."""
    return bytes([last | 0x80]) + b"\x80" * (size - 2) + b"\0"


def _mutant(what: str, sound: bytes, body: bytes | bytearray, **fields: int) -> Mutant:
    length = HEADER_SIZE - LOG_OVERHEAD + len(body)
    header = parse_header(sound)._replace(batch_length=length, **fields)
    batch = bytearray(pack_header(header)) + body
    seal(batch)
    return Mutant(what, bytes(batch))

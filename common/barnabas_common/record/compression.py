"""The four codecs of Kafka, each in the framing that its Java client reads and writes.

A codec sees the records of one batch as one block of bytes; the header of the batch stays readable.

- gzip: one gzip stream.
- snappy: the stream of snappy-java ("xerial"): a 16-byte header, then blocks of at most 32 KiB,
  each an int32 length and raw snappy. Raw snappy without that framing (librdkafka) is read too.
- lz4: one LZ4 frame of independent blocks; Java's reader refuses linked ones (KIP-57).
- zstd: one zstd frame (KIP-110).

Compressed bytes come from untrusted clients, and a few bytes can decompress to gigabytes. So
`decompress` has a limit, and stops before it allocates more.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

import cramjam

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.record.batch import Buffer, CorruptBatch

MAX_DECOMPRESSED_SIZE = 256 * 1024 * 1024
"""The most bytes that the records of one batch may have uncompressed; a builder holds to it too."""

ZSTD_LEVEL = 3
LZ4_LEVEL = 1

_GZIP_WINDOW = 31
"""The `wbits` of zlib for a gzip header and the largest window."""

_FIRST_GUESS_RATIO = 8
_FIRST_GUESS_MINIMUM = 64 * 1024

_XERIAL_BLOCK_SIZE = 32 * 1024
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_VERSION = 1
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", _XERIAL_VERSION, _XERIAL_VERSION)
_XERIAL_VERSIONS = struct.Struct(">8xii")
_XERIAL_LENGTH = struct.Struct(">i")


class Compression(IntEnum):
    """A codec by its number in a batch's attributes; its name is Kafka's `compression.type`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, name: str) -> "Compression":
        """The codec called `name`.

        Raises:
            InvalidArgumentError: Kafka has no codec of that name.
        """
        codec = cls.__members__.get(name.upper())
        if codec is None or name != name.lower():
            known = ", ".join(member.name.lower() for member in cls)
            raise InvalidArgumentError(f"unknown compression {name!r}; there are {known}")
        return codec


def compress(codec: int, data: Buffer) -> Buffer:
    """`data` compressed with the codec of that number."""
    return _COMPRESSORS[Compression(codec)](data)


def decompress(codec: int, payload: Buffer, limit: int = MAX_DECOMPRESSED_SIZE) -> Buffer:
    """The bytes that were compressed with the codec of that number.

    Raises:
        CorruptBatch: there is no such codec, the payload is malformed or cut short, or it has more
            than `limit` bytes uncompressed.
    """
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise CorruptBatch(f"compression {codec} is not known; 0 to {max(Compression)} are")
    try:
        return decompressor(payload, limit)
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        raise CorruptBatch(f"bytes are no {Compression(codec).name.lower()}: {error}") from error


def _too_large(limit: int) -> CorruptBatch:
    return CorruptBatch(f"compressed bytes unpack to more than {limit}")


def _compress_gzip(data: Buffer) -> Buffer:
    return zlib.compress(data, wbits=_GZIP_WINDOW)


def _decompress_gzip(payload: Buffer, limit: int) -> Buffer:
    """Decompress all members: a gzip stream may have several, one after the other."""
    parts, size, rest = [], 0, payload
    while rest:
        member = zlib.decompressobj(_GZIP_WINDOW)
        parts.append(member.decompress(rest, limit - size + 1))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if not member.eof:
            raise CorruptBatch("gzip stream is cut short")
        rest = member.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: Buffer) -> Buffer:
    view = memoryview(data)
    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        parts += (_XERIAL_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(payload: Buffer, limit: int) -> Buffer:
    view = memoryview(payload)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(view, limit)
    parts, size, position = [], 0, 0
    while position < len(view):
        # Joined streams repeat the header in between; snappy-java reads them.
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            version, _ = _XERIAL_VERSIONS.unpack_from(view, position)
            if version < _XERIAL_VERSION:  # snappy-java refuses it
                raise CorruptBatch(f"snappy stream of version {version}")
            position += len(_XERIAL_HEADER)
            continue
        (length,) = _XERIAL_LENGTH.unpack_from(view, position)
        position += _XERIAL_LENGTH.size
        if not 0 <= length <= len(view) - position:
            raise CorruptBatch(f"snappy block of {length} bytes, {len(view) - position} are left")
        parts.append(_snappy_block(view[position : position + length], limit - size))
        size += len(parts[-1])
        position += length
    return b"".join(parts)


def _snappy_block(block: memoryview, limit: int) -> bytes:
    """Decompress one block, which starts with its uncompressed size: a large one is refused."""
    if cramjam.snappy.decompress_raw_len(block) > limit:
        raise _too_large(limit)
    return bytes(cramjam.snappy.decompress_raw(block))


def _compress_lz4(data: Buffer) -> Buffer:
    compressor = cramjam.lz4.Compressor(level=LZ4_LEVEL, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))  # it takes no other buffer
    return bytes(compressor.finish())


def _compress_zstd(data: Buffer) -> Buffer:
    return bytes(cramjam.zstd.compress(data, level=ZSTD_LEVEL))


def _into_growing_buffer(decompress_into: Callable[[Buffer, bytearray], int]) -> "_Decompressor":
    """A decompressor with a limit, made from a function that fills a given buffer."""

    def decompress_bounded(payload: Buffer, limit: int) -> Buffer:
        size = min(limit, max(_FIRST_GUESS_MINIMUM, _FIRST_GUESS_RATIO * len(payload)))
        while True:
            output = bytearray(size)
            try:
                return memoryview(output)[: decompress_into(payload, output)]
            except cramjam.DecompressionError as error:
                # Rust's text for a full output buffer; all other errors mean bad input.
                if "failed to write whole buffer" not in str(error):
                    raise
                if size == limit:
                    raise _too_large(limit) from error
            size = min(limit, 4 * size)

    return decompress_bounded


_Decompressor = Callable[[Buffer, int], Buffer]

_COMPRESSORS: dict[Compression, Callable[[Buffer], Buffer]] = {
    Compression.NONE: lambda data: data,
    Compression.GZIP: _compress_gzip,
    Compression.SNAPPY: _compress_snappy,
    Compression.LZ4: _compress_lz4,
    Compression.ZSTD: _compress_zstd,
}
_DECOMPRESSORS: dict[int, _Decompressor] = {
    Compression.NONE: lambda payload, limit: payload,
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _into_growing_buffer(cramjam.lz4.decompress_into),
    Compression.ZSTD: _into_growing_buffer(cramjam.zstd.decompress_into),
}

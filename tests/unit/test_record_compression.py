"""The codecs return what they packed, in the framing that Kafka's Java client uses."""

import gzip
import struct

import cramjam
import pytest
from barnabas_common.errors import InvalidArgumentError
from barnabas_common.record.batch import CorruptBatch, batches, check_crc, parse_header
from barnabas_common.record.compression import Compression, compress, decompress
from barnabas_common.record.reader import read_batch
from barnabas_common.record.recompress import recompress
from hypothesis import given
from hypothesis import strategies as st

from tests.support import plain_codec as plain

CODECS = list(Compression)
PACKING = CODECS[1:]
TEXT = b"".join(b'{"row": %d, "carrier": "UA"}' % row for row in range(5000))
XERIAL_HEADER = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=500))
def test_what_is_packed_comes_back(codec: Compression, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(codec: Compression, kind: type) -> None:
    packed = compress(codec, kind(TEXT))
    assert bytes(decompress(codec, kind(packed))) == TEXT


@pytest.mark.parametrize("codec", PACKING)
def test_very_compressible_bytes_come_back(codec: Compression) -> None:
    """Their size is far above the first estimate."""
    zeros = bytes(10_000_000)
    packed = compress(codec, zeros)
    assert len(packed) < len(zeros) // 15
    assert bytes(decompress(codec, packed)) == zeros


def test_names_are_kafkas() -> None:
    names = ["none", "gzip", "snappy", "lz4", "zstd"]
    assert [Compression.of(name) for name in names] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["", "GZIP", "producer", "brotli"])
def test_unknown_names_are_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="there are none, gzip, snappy, lz4, zstd"):
        Compression.of(name)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_numbers_no_one_assigned_are_corrupt(codec: int) -> None:
    with pytest.raises(CorruptBatch, match=f"compression {codec} is not known"):
        decompress(codec, b"")


@pytest.mark.parametrize("codec", PACKING)
def test_more_than_the_limit_is_refused(codec: Compression) -> None:
    packed = compress(codec, bytes(200_000))
    assert len(decompress(codec, packed, limit=200_000)) == 200_000
    with pytest.raises(CorruptBatch, match="unpack to more than"):
        decompress(codec, packed, limit=199_999)


@pytest.mark.parametrize("codec", PACKING)
def test_garbage_is_corrupt(codec: Compression) -> None:
    with pytest.raises(CorruptBatch):
        decompress(codec, b"\xff" * 100)


@pytest.mark.parametrize("codec", PACKING)
def test_a_stream_cut_short_is_corrupt(codec: Compression) -> None:
    packed = bytes(compress(codec, TEXT))
    for cut in (len(packed) - 1, len(packed) // 2, 20):
        with pytest.raises(CorruptBatch):
            decompress(codec, packed[:cut])


def test_gzip_members_in_a_row_are_one_stream() -> None:
    joined = gzip.compress(TEXT) + gzip.compress(b"more")
    assert decompress(Compression.GZIP, joined) == TEXT + b"more"


def test_snappy_is_framed_as_by_snappy_java() -> None:
    packed = bytes(compress(Compression.SNAPPY, TEXT))
    assert packed.startswith(XERIAL_HEADER)
    position, blocks = len(XERIAL_HEADER), []
    while position < len(packed):
        (length,) = struct.unpack_from(">i", packed, position)
        blocks.append(bytes(cramjam.snappy.decompress_raw(packed[position + 4 :][:length])))
        position += 4 + length
    assert b"".join(blocks) == TEXT
    assert max(map(len, blocks)) == 32 * 1024


def test_raw_snappy_and_joined_streams_are_read_too() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    packed = bytes(compress(Compression.SNAPPY, TEXT))
    assert decompress(Compression.SNAPPY, packed + packed) == TEXT + TEXT


@pytest.mark.parametrize("length", [-1, 5, 2**31 - 1])
def test_a_snappy_block_beyond_the_end_is_corrupt(length: int) -> None:
    packed = XERIAL_HEADER + struct.pack(">i", length) + b"1234"
    with pytest.raises(CorruptBatch, match=f"snappy block of {length} bytes, 4 are left"):
        decompress(Compression.SNAPPY, packed)


def test_lz4_blocks_are_independent_as_java_demands() -> None:
    packed = bytes(compress(Compression.LZ4, TEXT))
    magic, flags = struct.unpack_from("<IB", packed)
    assert magic == 0x184D2204
    assert flags >> 6 == 1, "version of the frame format"
    assert flags >> 5 & 1, "independent blocks (KIP-57)"


def test_zstd_is_a_zstd_frame() -> None:
    assert bytes(compress(Compression.ZSTD, TEXT)).startswith(b"\x28\xb5\x2f\xfd")


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", CODECS)
def test_a_batch_changes_its_codec_and_nothing_else(
    source: Compression, target: Compression
) -> None:
    rows = [(1000 + row, b"UA", b"value" * 20, [("h", b"x")]) for row in range(50)]
    first = plain.build([(1, None, b"first", [])])
    batch = recompress(first + plain.build(rows, source.name.lower()), target, len(first))
    ((_, header),) = batches(batch)
    check_crc(batch, 0, header)
    assert header.compression == target
    assert header.size == len(batch)
    original = parse_header(plain.build(rows))
    kept = {"batch_length": 0, "attributes": 0, "crc": 0}
    assert header._replace(**kept) == original._replace(**kept)
    assert read_batch(batch) == plain.read(plain.build(rows))

"""The record codec in plain Python, which shows the format byte by byte.

The tests compare the compiled codec with it, in both directions.

A batch holds its records one after the other. The fields of a record, where all numbers except the
attributes are varints:

    length            bytes that follow
    attributes        int8, 0
    timestampDelta    ms, from the batch's baseTimestamp
    offsetDelta       from the batch's baseOffset
    keyLength, key    length -1: no key
    valueLength, value    length -1: no value, a tombstone
    headerCount, and for each header: keyLength, key (UTF-8), valueLength, value (-1: none)

A varint is zig-zag coded, so that small negative numbers are short too: 0, -1, 1, -2 become 0, 1,
2, 3. Each byte then holds seven bits, the lowest first; the high bit is set if more bytes follow.
"""

from collections.abc import Iterable, Sequence

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.record.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Buffer,
    CorruptBatch,
    check_crc,
    pack_header,
    parse_header,
    seal,
)
from barnabas_common.record.compression import Compression
from barnabas_common.record.recompress import recompress, uncompressed
from barnabas_common.record.record import Header, Record

NewRecord = tuple[int, bytes | None, bytes | None, Sequence[Header]]
"""A record before it has an offset: timestamp in ms, key, value, headers."""

_LONGEST_VARINT = 10


def build(records: Iterable[NewRecord], compression: str = "none") -> bytes:
    """Return a batch of these records, with base offset 0 and no leader epoch.

    Raises:
        InvalidArgumentError: there is no record, or a timestamp is negative.
    """
    rows = list(records)
    if not rows or min(row[0] for row in rows) < 0:
        raise InvalidArgumentError("a batch needs a record, and timestamps that are not negative")
    base_timestamp = rows[0][0]
    body = bytearray()
    for offset_delta, (timestamp, key, value, headers) in enumerate(rows):
        _write_record(body, timestamp - base_timestamp, offset_delta, key, value, headers)
    header = BatchHeader(
        base_offset=0,
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(body),
        partition_leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=len(rows) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(row[0] for row in rows),
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=len(rows),
    )
    batch = bytearray(pack_header(header)) + body
    seal(batch)
    codec = Compression.of(compression)
    return bytes(batch if codec == Compression.NONE else recompress(batch, codec))


def read(buffer: Buffer, position: int = 0) -> list[Record]:
    """Return all records of the batch at `position`.

    Raises:
        CorruptBatch: the batch is cut short, its CRC is wrong, or its records are malformed.
    """
    header = parse_header(buffer, position)
    check_crc(buffer, position, header)
    data = bytes(uncompressed(buffer, position, header))
    records, at = [], HEADER_SIZE
    try:
        for _ in range(header.record_count):
            record, at = _read_record(data, at, header)
            records.append(record)
        if at != len(data):
            raise CorruptBatch(f"{len(data) - at} bytes are left after the last record")
    except (IndexError, ValueError) as error:
        raise CorruptBatch(
            f"batch at byte {position}, offset {header.base_offset}: malformed records: {error}"
        ) from error
    return records


def encode_varint(number: int) -> bytes:
    """Encode a signed number of at most 64 bits as a zig-zag varint."""
    left = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number whose varint starts at `at`, and the position after it.

    Raises: IndexError: the bytes end within it. ValueError: it is longer than 64 bits need.
    """
    zigzag = 0
    for count in range(_LONGEST_VARINT):
        byte = data[at + count]
        zigzag |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), at + count + 1
    raise ValueError(f"varint at {at} has no end")


def _write_record(
    body: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header],
) -> None:
    record = bytearray(1)  # the attributes: no bit is assigned
    record += encode_varint(timestamp_delta)
    record += encode_varint(offset_delta)
    _write_bytes(record, key)
    _write_bytes(record, value)
    record += encode_varint(len(headers))
    for name, content in headers:
        _write_bytes(record, name.encode())
        _write_bytes(record, content)
    body += encode_varint(len(record))
    body += record


def _write_bytes(record: bytearray, content: bytes | None) -> None:
    if content is None:
        record += encode_varint(-1)
    else:
        record += encode_varint(len(content))
        record += content


def _read_record(data: bytes, at: int, header: BatchHeader) -> tuple[Record, int]:
    length, start = decode_varint(data, at)
    timestamp_delta, at = decode_varint(data, start + 1)  # after the attributes
    offset_delta, at = decode_varint(data, at)
    key, at = _read_bytes(data, at)
    value, at = _read_bytes(data, at)
    headers, at = _read_headers(data, at)
    if at - start != length:
        raise ValueError(f"a record of {length} bytes took {at - start}")
    by_broker = header.timestamp_type
    record = Record(
        offset=header.base_offset + offset_delta,
        timestamp=header.max_timestamp if by_broker else header.base_timestamp + timestamp_delta,
        timestamp_type=by_broker,
        key=key,
        value=value,
        headers=headers,
        leader_epoch=header.partition_leader_epoch,
    )
    return record, at


def _read_headers(data: bytes, at: int) -> tuple[list[Header], int]:
    count, at = decode_varint(data, at)
    if count < 0:
        raise ValueError(f"{count} headers")
    headers: list[Header] = []
    for _ in range(count):
        name, at = _read_bytes(data, at)
        if name is None:
            raise ValueError("a header without a name")
        content, at = _read_bytes(data, at)
        headers.append((name.decode(), content))
    return headers, at


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = decode_varint(data, at)
    if length < 0:
        return None, at
    if at + length > len(data):
        raise IndexError(f"{length} bytes at {at}, {len(data) - at} are left")
    return data[at : at + length], at + length

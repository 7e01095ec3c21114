"""Changing the codec of a batch: the header is kept, the records are packed again.

The builder packs its records, the reader unpacks before it decodes, and a broker whose topic has
another `compression.type` than the producer used does both.
"""

from barnabas_common.record.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    Buffer,
    pack_header,
    parse_header,
    seal,
    whole_batch,
)
from barnabas_common.record.compression import (
    MAX_DECOMPRESSED_SIZE,
    Compression,
    compress,
    decompress,
)


def recompress(buffer: Buffer, codec: int, position: int = 0) -> bytearray:
    """The batch at `position` with its records packed by `codec`, and with its new CRC.

    Raises:
        CorruptBatch: the batch is cut short or cannot be unpacked.
    """
    header = parse_header(buffer, position)
    records = compress(codec, _plain_records(buffer, position, header))
    batch = _join(header, codec, records)
    seal(batch)
    return batch


def uncompressed(
    buffer: Buffer, position: int, header: BatchHeader, limit: int = MAX_DECOMPRESSED_SIZE
) -> Buffer:
    """The batch at `position` with plain records, for a decoder; not copied if they are plain.

    The CRC stays that of the compressed bytes.

    Raises:
        CorruptBatch: the batch is cut short, cannot be unpacked, or holds over `limit` bytes.
    """
    if header.compression == Compression.NONE:
        return whole_batch(buffer, position, header)
    return _join(header, Compression.NONE, _plain_records(buffer, position, header, limit))


def _plain_records(
    buffer: Buffer, position: int, header: BatchHeader, limit: int = MAX_DECOMPRESSED_SIZE
) -> Buffer:
    records = whole_batch(buffer, position, header)[HEADER_SIZE:]
    return decompress(header.compression, records, limit)


def _join(header: BatchHeader, codec: int, records: Buffer) -> bytearray:
    renewed = header._replace(
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records),
        attributes=(header.attributes & ~COMPRESSION_MASK) | codec,
    )
    batch = bytearray(pack_header(renewed))
    batch += records
    return batch

"""Changes the codec of a batch: the header stays, the records are compressed again.

The builder compresses its records, the reader decompresses before it decodes. A broker does both if
its topic has another `compression.type` than the producer used.
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
    """The batch at `position` with its records compressed by `codec`, and with a new CRC.

    Raises:
        CorruptBatch: the batch is cut short or cannot be decompressed.
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
        CorruptBatch: the batch is cut short, cannot be decompressed, or has more than `limit` bytes
            of records.
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
    """A batch of this header, with its length and codec replaced, and the records."""
    renewed = header._replace(
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records),
        attributes=(header.attributes & ~COMPRESSION_MASK) | codec,
    )
    batch = bytearray(pack_header(renewed))
    batch += records
    return batch

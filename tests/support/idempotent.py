"""Batches of idempotent producers, for tests."""

from barnabas_common.record.batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    pack_header,
    parse_header,
    seal,
)
from barnabas_common.record.builder import BatchBuilder

from tests.support.log_world import NOW


def header_of(
    producer_id: int = 1,
    epoch: int = 0,
    first: int = 0,
    last: int | None = None,
    offset: int = 0,
    timestamp: int = NOW,
    attributes: int = 0,
) -> BatchHeader:
    """The header of a batch with the sequences from `first` to `last`, at `offset`."""
    delta = 0 if last is None else (last - first) & (2**31 - 1)
    return BatchHeader(
        base_offset=offset,
        batch_length=HEADER_SIZE - LOG_OVERHEAD,
        partition_leader_epoch=0,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=delta,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=first,
        record_count=delta + 1,
    )


def sent(
    *values: bytes,
    producer_id: int = 1,
    epoch: int = 0,
    sequence: int = 0,
    timestamp: int = NOW,
    attributes: int = 0,
    key: bytes | None = None,
) -> bytes:
    """A batch as an idempotent producer sends it."""
    builder = BatchBuilder("none")
    for value in values:
        builder.append(timestamp, key, value)
    batch = bytearray(builder.build())
    header = parse_header(batch)._replace(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    header = header._replace(attributes=header.attributes | attributes)
    batch[:HEADER_SIZE] = pack_header(header)
    seal(batch)
    return bytes(batch)


MARKER = TRANSACTIONAL | CONTROL

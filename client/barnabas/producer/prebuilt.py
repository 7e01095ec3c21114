"""Record batches as bytes: what they hold, and who they say produced them."""

from typing import NamedTuple

from barnabas_common.errors import CorruptMessageError
from barnabas_common.record.batch import (
    HEADER_SIZE,
    TRANSACTIONAL,
    CorruptBatch,
    batches,
    check_crc,
    pack_header,
    parse_header,
    stamp_producer,
)
from barnabas_common.record.sequence import sequence_after


class Measured(NamedTuple):
    """`offsets` is how many offsets the batches take up: more than `records` after compaction.

    `max_timestamp` is in ms, -1 if no batch has a timestamp. `names_producer`: a batch says who
    produced it, because it was read from a log.
    """

    batches: int
    records: int
    offsets: int
    max_timestamp: int
    names_producer: bool


def measure(payload: bytes) -> Measured:
    """Count the contents of batches. Raises `CorruptMessageError` if they are not whole and valid.

    The broker checks again; here the caller gets the error immediately, not after all retries.
    """
    position = count = records = offsets = 0
    max_timestamp = -1
    names_producer = False
    try:
        while position < len(payload) or not records:
            header = parse_header(payload, position)
            if position + header.size > len(payload):
                raise CorruptBatch(f"the batch at byte {position} is cut short")
            check_crc(payload, position, header)
            count += 1
            records += header.record_count
            offsets += header.last_offset_delta + 1
            max_timestamp = max(max_timestamp, header.max_timestamp)
            names_producer = names_producer or header.producer_id >= 0
            position += header.size
            if not header.record_count:
                raise CorruptBatch("an empty batch cannot be produced")
    except CorruptBatch as error:
        raise CorruptMessageError(str(error)) from error
    return Measured(count, records, offsets, max_timestamp, names_producer)


def with_producer(
    payload: bytes,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool = False,
) -> bytes:
    """The batches with this producer in their headers, and consecutive sequences.

    The sequences count offsets, as the leader does; after 2^31 - 1 comes 0. With -1 for all three,
    the batches name no producer. They are part of a transaction only if they are `transactional`.
    """
    numbered = []
    for position, header in batches(payload):
        batch = bytearray(memoryview(payload)[position : position + header.size])
        mark_transactional(batch, transactional)
        stamp_producer(batch, producer_id, producer_epoch, base_sequence)
        numbered.append(batch)
        if base_sequence >= 0:
            base_sequence = sequence_after(base_sequence, header.last_offset_delta + 1)
    return b"".join(numbered)


def mark_transactional(batch: bytearray, transactional: bool) -> None:
    """Say in the header of one batch whether it is part of a transaction; the CRC is not updated.

    What was read from a log may be part of another transaction.
    """
    header = parse_header(batch)
    if bool(header.attributes & TRANSACTIONAL) == transactional:
        return
    attributes = header.attributes & ~TRANSACTIONAL | (TRANSACTIONAL if transactional else 0)
    batch[:HEADER_SIZE] = pack_header(header._replace(attributes=attributes))

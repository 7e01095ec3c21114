"""Checks of record batches that were built elsewhere, before they are sent."""

from typing import NamedTuple

from barnabas_common.errors import CorruptMessageError
from barnabas_common.record.batch import CorruptBatch, check_crc, parse_header


class Measured(NamedTuple):
    """`offsets` is how many offsets the batches take up: more than `records` after compaction.

    `max_timestamp` is in ms, -1 if no batch has a timestamp.
    """

    records: int
    offsets: int
    max_timestamp: int


def measure(payload: bytes) -> Measured:
    """Count the contents of batches. Raises `CorruptMessageError` if they are not whole and valid.

    The broker checks again; here the caller gets the error immediately, not after all retries.
    """
    position = records = offsets = 0
    max_timestamp = -1
    try:
        while position < len(payload) or not records:
            header = parse_header(payload, position)
            if position + header.size > len(payload):
                raise CorruptBatch(f"the batch at byte {position} is cut short")
            check_crc(payload, position, header)
            records += header.record_count
            offsets += header.last_offset_delta + 1
            max_timestamp = max(max_timestamp, header.max_timestamp)
            position += header.size
            if not header.record_count:
                raise CorruptBatch("an empty batch cannot be produced")
    except CorruptBatch as error:
        raise CorruptMessageError(str(error)) from error
    return Measured(records, offsets, max_timestamp)

"""The check of the records in a producer's batch (Kafka's `LogValidator`).

A batch with a valid checksum can hold records that no reader can decode: every consumer of the
partition would stop there permanently. So the compiled decoder reads all records once.

Readers differ, however. The decoder accepts numbers in more bytes than they need, and attributes of
two bytes; Kafka's reader fails after five bytes. With `record.validation=exact` the records must
take exactly the bytes that a producer writes. That costs as much again, so it is not the default.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from barnabas_common.errors import (
    InvalidRecordError,
    RecordListTooLargeError,
    ThrottlingQuotaExceededError,
)
from barnabas_common.record.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Buffer,
    CorruptBatch,
)
from barnabas_common.record.compiled import (
    MALFORMED,
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
    guarded,
)
from barnabas_common.record.compression import Compression
from barnabas_common.record.recompress import uncompressed

MAX_UNPACKED_SIZE = 32 * 1024 * 1024
"""Bytes that the records of a compressed batch may take unpacked, unless `max.message.bytes` is
more. Readers accept 256 MiB, but a broker serves no other request while it decodes."""

MAX_UNPACKED_IN_REQUEST = 2 * MAX_UNPACKED_SIZE
"""Once the compressed batches of a request have taken so many bytes, no more are unpacked."""

MOST_BATCHES = 20_000
"""In one request. Appended as fast as possible, they take a second."""

_ANY_SIZE = 2**31 - 1
_NO_TIMESTAMP = -1


def has_too_many_batches(records: Sequence[bytes]) -> bool:
    """Whether the batches for the partitions of a request are more than `MOST_BATCHES`."""
    if len(records) > MOST_BATCHES:
        return True
    if sum(map(len, records)) <= MOST_BATCHES * HEADER_SIZE:
        return False
    starts = chain.from_iterable(map(batch_starts, records))
    return sum(1 for _ in islice(starts, MOST_BATCHES + 1)) > MOST_BATCHES


def batch_starts(records: bytes) -> Iterator[int]:
    """Where batches begin, by their lengths alone; one that is too short counts as a header."""
    position = 0
    while position < len(records):
        yield position
        length = int.from_bytes(records[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        position += max(LOG_OVERHEAD + length, HEADER_SIZE)


class Unpacking:
    """What the compressed batches of one request take unpacked.

    A request of some kilobytes could otherwise unpack to terabytes, and stop the event loop for
    hours.
    """

    def __init__(self) -> None:
        self._spent = 0
        self._earlier = 0

    def begin_append(self) -> None:
        """The batches of the next partition follow."""
        self._earlier = self._spent

    def check(self) -> None:
        """Raise a KafkaError if no more may be unpacked; a retriable one if other partitions of the
        request took a part of it."""
        if self._spent < MAX_UNPACKED_IN_REQUEST:
            return
        error = ThrottlingQuotaExceededError if self._earlier else RecordListTooLargeError
        raise error(
            f"the compressed batches before this one unpack to {self._spent} bytes; the limit for"
            f" one request is {MAX_UNPACKED_IN_REQUEST}"
        )

    def spend(self, size: int) -> None:
        """Count a batch that takes so many bytes."""
        self._spent += size


def validate_records(
    header: BatchHeader,
    data: Buffer,
    require_keys: bool = False,
    exact: bool = False,
    max_unpacked: int = MAX_UNPACKED_SIZE,
    unpacking: Unpacking | None = None,
) -> int:
    """Check every record of a batch whose header and checksum are valid.

    Returns the earliest timestamp in ms, -1 if no record has one. With `require_keys` a record
    without a key is refused, because compaction needs keys; such batches must be `exact` too.

    Raises:
        InvalidRecordError: the records cannot be decoded to the end, or have other offsets or
            another latest timestamp than the header.
        KafkaError: see `Unpacking.check`.
    """
    try:
        plain = _unpacked(header, data, max_unpacked, unpacking)
        batch = DefaultRecordBatch(guarded(plain))
        if exact or require_keys:
            batch = _exact(batch, header, len(plain) - HEADER_SIZE, require_keys)
        earliest, latest = _walk(batch)
    except CorruptBatch as error:
        raise InvalidRecordError(f"the records cannot be unpacked: {error}") from error
    except MALFORMED as error:
        raise InvalidRecordError(f"malformed records: {error}") from error
    if latest != header.max_timestamp:
        raise InvalidRecordError(
            f"the latest timestamp of the records is {latest}, not {header.max_timestamp}"
        )
    return earliest


def _unpacked(
    header: BatchHeader, data: Buffer, max_unpacked: int, unpacking: Unpacking | None
) -> Buffer:
    if unpacking is None or header.compression == Compression.NONE:
        return uncompressed(data, 0, header, max_unpacked)
    unpacking.check()
    try:
        plain = uncompressed(data, 0, header, max_unpacked)
    except CorruptBatch:
        unpacking.spend(max_unpacked)  # as much as it may have taken
        raise
    unpacking.spend(len(plain))
    return plain


def _walk(batch: Iterable[Any]) -> tuple[int, int]:
    """The earliest and the latest timestamp.

    One plain loop: each record is freed before the next is created, which is twice as fast as
    columns of them.
    """
    earliest, latest = None, _NO_TIMESTAMP
    for expected, record in enumerate(batch):
        if record.offset != expected:
            raise InvalidRecordError(f"record {expected} has offset delta {record.offset}")
        timestamp = record.timestamp
        if timestamp is None:
            continue
        if earliest is None:
            earliest = latest = timestamp
        elif timestamp > latest:
            latest = timestamp
        elif timestamp < earliest:
            earliest = timestamp
    return _NO_TIMESTAMP if earliest is None else earliest, latest


def _exact(
    batch: Iterable[Any], header: BatchHeader, size: int, require_keys: bool
) -> Iterator[Any]:
    """Yield the records; they must take as many bytes as a producer would write for them."""
    size_in_bytes = _producer(header.base_timestamp).size_in_bytes
    needed = 0
    for record in batch:
        offset, timestamp, key = record.offset, record.timestamp, record.key
        if key is None and require_keys:
            raise InvalidRecordError(f"record {offset} has no key; the topic is compacted")
        if timestamp is None:
            timestamp = _NO_TIMESTAMP
        needed += size_in_bytes(offset, timestamp, key, record.value, record.headers)
        yield record
    if needed != size:
        raise InvalidRecordError(f"malformed records: {size} bytes for what takes {needed}")


def _producer(base_timestamp: int) -> DefaultRecordBatchBuilder:
    """A builder with one record, which computes the size of the next ones."""
    builder = DefaultRecordBatchBuilder(
        magic=MAGIC,
        compression_type=Compression.NONE,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=_ANY_SIZE,
    )
    builder.append(0, base_timestamp, None, None, [])
    return builder
